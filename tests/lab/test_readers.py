"""Readers of published tables: coins never beat the central figure, and attacks are held against luck and controls."""

from dataclasses import replace
from math import exp
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lab.attacks.coins import coin_audit
from lab.attacks.readers import (
    Crowds,
    Reading,
    alone_in_its_gap,
    coin_scores,
    differencing,
    membership,
    memo_sent,
    scores,
    with_coins,
)
from lab.seeded_keyrings import seeded_keyring
from protocols.mechanisms import Flip
from protocols.mechanisms.rounds import grr
from protocols.privacy.central import central
from protocols.respondent import Respondent
from protocols.scheme import Scheme
from protocols.wire import CLOCK, FRAME, Clock, Frame, encode_clock, encode_frame
from stream_app.finals import Final
from stream_app.local import EmbeddedApp
from stream_app.log import FINALS
from tests.helpers.surveys import of_size, scheme_with
from tests.lab.observing import ALPHA, MECHANISMS

FESTIVAL = {"eps_inf": 4.0, "eps_1": 2.0}
SIZE, DELTA = 40, 0.05  # so that 100,000 coins see most of what is claimed
KEY = b"the operator's own key"


def asked(k: int = 3, mechanism: str = "l-grr", **terms: Any) -> Scheme:
    return scheme_with(of_size(k, mechanism=mechanism), **(terms or FESTIVAL))


def crowds_of(scheme: Scheme, size: int, number: int, seed: int = 0) -> Crowds:
    return Crowds(Respondent(scheme, seeded_keyring(seed)), scheme.questions[0], size, number)


def tossed(periods: int, crowds: int) -> Any:
    return np.random.default_rng([periods, crowds]).random((periods, crowds)) < 0.5


def claim(scheme: Scheme, size: int = SIZE, delta: float = DELTA) -> float:
    found = central(scheme.guarantees, {scheme.questions[0].name: [size]}, delta=delta)
    return found.by_attribute[scheme.questions[0].name]


def published(directory: Path, periods: int, attributes: int) -> tuple[Any, Any, float]:
    """Scores and coins from finals of the stream app, which counted frames of devices; and what is claimed.

    In each block of SIZE periods other devices report, one of them with a coin's value, as in `coin_scores`. Each
    answers for all attributes, with the budget of FESTIVAL for each.
    """
    scheme = scheme_with(
        *(of_size(3, f"a{i}", mechanism="l-grr") for i in range(attributes)), clock="source", solution="spl",
        central={"delta": 1e-8}, **{name: attributes * eps for name, eps in FESTIVAL.items()},
    )  # fmt: skip
    respondent, period = Respondent(scheme, seeded_keyring(0)), np.repeat(np.arange(periods), SIZE)
    member, coins = np.tile(np.arange(SIZE), periods), tossed(periods, attributes)
    devices, victim = (period // SIZE * SIZE + member).astype(np.uint64), member == period % SIZE
    tokens, answers, others = respondent.tokens(devices, period), {}, {}
    for place, question in enumerate(scheme.questions):
        values = np.where(victim, np.where(coins[period, place], 0, question.k - 1), question.k // 2)
        answers[question.name] = respondent.answers(question, devices, period, values)
        memos = respondent.answers(memo_sent(question), devices[~victim], 0, values[~victim])
        counted, second = np.zeros((periods, question.k)), question.mechanism.second
        np.add.at(counted, (period[~victim], memos), 1)
        others[place] = second.q * (SIZE - 1) + second.gain * counted
    found, gaps = np.empty((periods, attributes)), np.full(SIZE, scheme.survey.horizon, dtype=np.uint16)
    with EmbeddedApp(directory, [scheme.survey], KEY, KEY) as app:
        for now in range(periods):
            rows = slice(now * SIZE, (now + 1) * SIZE)
            about = scheme.survey.id, scheme.fingerprint, now, tokens[rows], gaps
            frame = Frame(*about, {name: symbols[rows] for name, symbols in answers.items()}).sorted()
            app.send(0, FRAME, encode_frame(frame, scheme))
            app.send(0, CLOCK, encode_clock(Clock(scheme.survey.id, now), KEY))
            if now % SIZE == SIZE - 1 or now == periods - 1:
                app.flush()
        finals = [Final.decode(message.value or b"") for message in app.store.messages(FINALS)]
    assert len(finals) == periods
    for final in finals:
        for place, question in enumerate(scheme.questions):
            table = final.counts[question.name].supports
            found[final.period, place] = scores(question, table - others[place][final.period])
    return found.ravel(), coins.ravel(), claim(scheme)


@pytest.mark.parametrize(
    ("periods", "attributes", "least"),
    [(40, 20, 0.0), pytest.param(1563, 64, 0.75, marks=pytest.mark.long(part="statistics"))],
)
def test_coins_on_published_tables_never_beat_the_claim_and_many_reach_most_of_it(
    tmp_path: Path, periods: int, attributes: int, least: float
) -> None:
    """The second case has 100,032 tables. Finals on a cluster are made by the same code from the same frames."""
    found, coins, promise = published(tmp_path, periods, attributes)
    proven, _ = coin_audit(found, coins, ALPHA, DELTA)
    assert least * promise <= proven <= promise
    assert coin_audit(np.where(coins, 1.0, -1.0), coins, ALPHA, DELTA)[0] > promise, "these coins can refute it"


class Broken(Respondent):
    """Devices that draw memos with a round that has too little noise, or share the noise of reports two by two."""

    first: Flip | None = None

    def memoise(self, question: Any, devices: Any, cells: Any) -> Any:
        if self.first is not None:
            question = replace(question, mechanism=replace(question.mechanism, first=self.first))
        return super().memoise(question, devices, cells)

    def report(self, question: Any, devices: Any, period: int, memo: Any) -> Any:
        return super().report(question, devices if self.first else devices - devices % 2, period, memo)


def test_devices_with_a_planted_fault_are_refuted_from_their_tables() -> None:
    coins, scheme = tossed(10, 2000), asked()
    crowds = crowds_of(scheme, SIZE, 2000)
    assert coin_audit(coin_scores(crowds, coins).ravel(), coins.ravel(), ALPHA, DELTA)[0] <= claim(scheme)
    skipped = replace(crowds, question=memo_sent(crowds.question))
    assert coin_audit(coin_scores(skipped, coins).ravel(), coins.ravel(), ALPHA, DELTA)[0] > claim(scheme)
    tight = asked(eps_inf=1.0, eps_1=0.99)
    for first, refuted in ((grr(3, 2.0), True), (grr(3, 1.0), False)):
        devices = Broken(tight, seeded_keyring(0))
        devices.first = first
        wrong = Crowds(devices, tight.questions[0], SIZE, 2000)
        proven, _ = coin_audit(coin_scores(wrong, coins).ravel(), coins.ravel(), ALPHA, DELTA)
        assert (proven > claim(tight)) == refuted
    steady = asked(eps_inf=9.0, eps_1=2.0)  # nearly all memos are the value
    shared = Crowds(Broken(steady, seeded_keyring(0)), steady.questions[0], SIZE, 2000)
    odd = shared.tables(0, shared.devices, with_coins(shared, coins[0])) % 2  # two devices with one memo add 2, or none
    assert coin_audit((odd[:, 0] - odd[:, 2]).astype(float), coins[0], ALPHA, DELTA)[0] > claim(steady)


@pytest.mark.parametrize(("name", "terms"), [case for case in MECHANISMS if case[0] != "olh"])
def test_no_mechanism_is_refuted_from_its_tables(name: str, terms: dict[str, Any]) -> None:
    scheme, coins = asked(4, name, **terms), tossed(8, 1000)
    proven, _ = coin_audit(coin_scores(crowds_of(scheme, SIZE, 1000), coins).ravel(), coins.ravel(), ALPHA, DELTA)
    sent = scheme.survey.sends_memo
    local = scheme.guarantees.constant(1).whole or 0.0
    assert proven <= (local if sent else claim(scheme))
    assert proven > 0.3 * local or not sent, "a memo that is sent shows in a table"


def test_membership_is_luck_in_a_large_crowd_and_not_in_a_small_one_or_without_noise() -> None:
    scheme, found = asked(10), {}
    for size, number in ((3250, 60), (54, 2000)):
        values = np.random.default_rng(size).integers(10, size=size * number)
        told, control = membership(crowds_of(scheme, size, number), values, 7)
        assert (control.share or 0) > 0.9
        found[size] = told.interval(ALPHA)
    assert found[3250][0] <= 0.5 <= found[3250][1] and found[54][0] > 0.5


def test_paths_from_tables_are_no_better_than_staying_and_those_from_exact_counts_are() -> None:
    reading, question = Reading(asked(10).survey, {"a": np.arange(1000) % 10}, ALPHA, 0), asked(10).questions[0]
    luck, told, control = reading.paths(replace(reading.crowds(question, seeded_keyring(0)), size=300, number=60))
    assert (told.share or 0) < (luck.share or 0) + 0.01 < (control.share or 0)


def test_a_difference_of_tables_shows_a_memo_that_is_sent_and_little_behind_round_2() -> None:
    scheme, coins = asked(), tossed(1, 2000)[0]
    crowds, memo = crowds_of(scheme, SIZE, 2000), scheme.questions[0].mechanism.first
    assert isinstance(memo, Flip)
    told, control = (differencing(crowds, coins, one) for one in (crowds.question, memo_sent(crowds.question)))
    shown = memo.p + (1 - memo.p - memo.q) / 2  # the memo of the value, or one that tells nothing
    assert control.interval(ALPHA)[0] <= shown <= control.interval(ALPHA)[1]
    bound = (exp(claim(scheme)) + DELTA) / (1 + exp(claim(scheme)))
    assert (told.share or 0) > 0.5 and told.interval(ALPHA)[0] <= bound < 0.75


@pytest.mark.parametrize(
    ("terms", "hidden"), [({}, False), ({"central": {"delta": 1e-8}}, True), ({"minimum": 20}, True)]
)
def test_a_device_that_is_alone_in_its_gap_is_hidden_by_what_finals_leave_out(
    terms: dict[str, Any], hidden: bool
) -> None:
    scheme = asked(horizon=3, **FESTIVAL, **terms)
    told, report = alone_in_its_gap(crowds_of(scheme, SIZE, 1000), tossed(1, 1000)[0], scheme)
    assert (report.share or 0) > 0.75
    assert told == report if not hidden else (told.share or 0) < 0.65
