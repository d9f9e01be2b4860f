"""What stands beside the answers of our own devices tells nothing, and planted defects are refuted."""

import secrets
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hearsay.terminal.console import no_step
from hearsay.terminal.explaining import BROKEN
from lab.attacks.beside import (
    Classifier,
    bits_of_bytes,
    bits_of_numbers,
    chance_of_luck,
    chance_of_sum,
    likeness_kept,
    likeness_lost,
    told,
)
from lab.attacks.coins import steady_coins
from lab.auditing.functions import audit_function
from memo_store.survey_memos import SurveyMemos
from protocols.arrays import Devices, Values
from protocols.errors import SettingsError
from protocols.question import Question
from protocols.randomness import Keyring
from protocols.respondent import Respondent
from tests.helpers.surveys import of_size, scheme_with
from tests.lab.calling import LEVEL, call, refuted
from tests.lab.observing import TWO_ROUNDS, asked, honest, observe, tossed, with_coins, without_memo

SIZES = "--devices 200 --periods 4"


def test_healthy_devices_are_not_refuted(tmp_path: Path) -> None:
    assert refuted(tmp_path, SIZES) == set()


def test_tokens_that_do_not_depend_on_the_period_are_refuted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Respondent.tokens
    monkeypatch.setattr(Respondent, "tokens", lambda self, devices, period: real(self, devices, 0))
    assert refuted(tmp_path, SIZES) == {"token-twice"}


@pytest.mark.parametrize("drawn", [("tokens",), ("memoise", "report")])
def test_a_secret_that_is_not_used_is_refuted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, drawn: tuple[str, ...]
) -> None:
    def constant(real: Any) -> Any:
        return lambda self, *given: real(Respondent(self.scheme, Keyring(bytes(32))), *given)

    for name in drawn:
        monkeypatch.setattr(Respondent, name, constant(getattr(Respondent, name)))
    assert refuted(tmp_path, SIZES) == {"same-secret"}


def test_memos_that_are_drawn_anew_at_every_start_are_refuted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def draw(self: Any, question: Question, devices: Devices, cells: Values, period: int) -> Any:
        """Each start makes a store of its own, with a secret of its own."""
        self.own = getattr(self, "own", None) or Respondent(self.respondent.scheme, Keyring(secrets.token_bytes(32)))
        return self.own.memoise(question, devices, cells)

    monkeypatch.setattr(SurveyMemos, "lookup", draw)
    assert "memo-changed" in refuted(tmp_path, SIZES)


def test_devices_that_send_the_truth_are_refuted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Respondent, "memoise", lambda self, question, devices, cells: cells.astype(np.uint8))
    monkeypatch.setattr(Respondent, "report", lambda self, question, devices, period, memo: memo)
    assert "loss-above-promise" in refuted(tmp_path, SIZES)


def test_a_byte_or_a_time_that_tells_the_coin_is_noticed_and_noise_is_not() -> None:
    random, coins = np.random.default_rng(1), tossed(400)
    noise = random.integers(256, size=(400, 500), dtype=np.uint8)
    leaking = noise.copy()
    leaking[:, 17] = np.where(coins & (random.random(400) < 0.7), leaking[:, 17] | 4, leaking[:, 17] & 251)
    for rows, seen in ((noise, False), (leaking, True)):
        bits, names = bits_of_bytes(rows)
        classifier = Classifier(bits[::2], coins[::2])
        luck = chance_of_luck(classifier.scores(bits[1::2]) > 0, coins[1::2])
        assert (luck < LEVEL) is seen and (names[classifier.best] == "bit 2 of byte 17") is seen

    bits, _ = bits_of_numbers(np.random.default_rng(2).normal(size=400) + 2 * coins)
    assert chance_of_luck(Classifier(bits[::2], coins[::2]).scores(bits[1::2]) > 0, coins[1::2]) < LEVEL


@pytest.mark.long(part="statistics")
def test_small_chances_of_luck_are_as_rare_as_they_say() -> None:
    """Of 2,000 healthy sets of devices: what is beside the answers, and answers after a restart and of twins."""
    scheme, small = asked("l-grr", 4, **TWO_ROUNDS), []
    for seed in range(2000):
        coins = tossed(80, seed)
        seen = with_coins(scheme, steady_coins(scheme, 4), coins, 4, honest, seed)
        other = with_coins(scheme, steady_coins(scheme, 4), coins, 1, honest, seed + 2000)
        found = likeness_lost(seen), likeness_kept(seen, other)
        small.append((told(seen, coins)[0], *map(chance_of_sum, found)))
    for level in (0.05, 0.01):
        assert (np.array(small) <= level).mean(axis=0).max() <= level + 3 * (level / 2000) ** 0.5
    assert (np.array(small) <= 0.3).any(axis=0).all(), "the tests are not tight at all"


def test_answers_without_a_memo_are_as_alike_before_and_after_a_restart() -> None:
    """Only a change at the restart counts: devices without memos are refuted by coins."""
    scheme = asked("l-grr", 4, **TWO_ROUNDS)
    seen = with_coins(scheme, steady_coins(scheme, 6), tossed(500), 6, without_memo)
    assert chance_of_sum(likeness_lost(seen)) > LEVEL


@pytest.mark.parametrize("solution", ["spl", "smp"])
def test_noise_that_is_the_same_under_another_secret_is_noticed(solution: str) -> None:
    attributes = of_size(4, "a", mechanism="l-grr"), of_size(10, "b", mechanism="l-osue")
    scheme = scheme_with(*attributes, solution=solution, **TWO_ROUNDS)
    values = {name: np.random.default_rng(5).integers(3, size=(1, 200)) for name in ("a", "b")}
    first, copy, other = (observe(scheme, values, seed=seed) for seed in (0, 0, 1))
    assert chance_of_sum(likeness_kept(first, copy)) < LEVEL / 10
    assert chance_of_sum(likeness_kept(first, other)) > LEVEL


def flipped(value: int, last: float) -> bytes:
    """Eight bits, each flipped with 0.3; the last one with another chance."""
    bits = np.arange(8) == value
    return bytes(np.packbits(bits ^ (np.random.default_rng().random(8) < np.array([0.3] * 7 + [last]))))


def test_a_bit_that_is_never_flipped_is_proven_without_being_told_where() -> None:
    for last, broken in ((0.3, False), (0.0, True)):
        report = audit_function("m:f", lambda value, last=last: flipped(value, last), 8, 1.7, 6000, LEVEL, 3, no_step)
        assert bool(report.defects) is broken
        assert not broken or "7" in report.figures[0].target


def test_a_function_is_named_by_its_module_and_must_return_bytes() -> None:
    for name in ("no_such_module:f", "math:nothing", "math:sqrt"):
        result = call(f"audit --function {name} --values 2 --promise 1 --devices 400")
        assert isinstance(result.exception, SettingsError)
    assert call("audit --function builtins:bytes --devices 400 --values 2 --promise 1").exit_code == BROKEN
    assert call("audit survey.yaml --function math:sqrt --values 2 --promise 1").exit_code == 2
    assert call("audit --function math:sqrt --values 2").exit_code == 2, "without a promise nothing is refuted"
