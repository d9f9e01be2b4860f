"""A file that release 0.2 moved from version 0.1, or wrote itself: devices go on with it. One of 0.1 is refused.

It has six surveys, each answered on the first three days of 2026 with the values 1, 2 and 3 (of places: 600, 1,300 and
2,000 m east, 700 m north), and the reports of the third day are owed. The secret is the numbers from 0 to 31.

`device-of-0.2.sqlite` has five surveys, each answered on the first three days of 2026; reports of the
third day are owed. Release 0.2 has written `device-of-0.2.json`, too: what it charged and owed, and
what it said to each value on the fourth day, where it sent memos. Neither is made again.
"""

import json
import shutil
import sqlite3
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hearsay_device import Device, DeviceError, Limits
from hearsay_device.respondent import Respondent as Answering
from hearsay_device.terms import read_terms
from protocols.question import Question
from protocols.randomness import Keyring
from protocols.randomness.sampling import uniform
from protocols.respondent import Respondent
from tests.clients.cases import ANY
from tests.clients.libraries import Clock, open_device, stored
from tests.helpers.terms import decode_terms

STATES = Path(__file__).parents[1] / "states"
OLD = STATES / "device-of-0.1.sqlite"
MOVED = STATES / "device-moved-from-0.1.sqlite"
OLD_JAVASCRIPT = STATES / "javascript-device-of-0.1.json"  # of the same surveys, values and secret
OF_0_2 = STATES / "device-of-0.2.sqlite"
SAID_BY_0_2 = json.loads(OF_0_2.with_suffix(".json").read_text())
SECRET = bytes(range(32))
ALONE = np.zeros(1, dtype=np.uint64)


class OldRespondent(Respondent):
    """Answers of version 0.1, which knew no questions and no order but the survey's."""

    def sampled(self, devices: Any) -> Any:
        table = self.scheme.sampled(range(len(self.scheme.questions)))
        return table.sample(self.keyring.draws(("sampled", *self._survey), devices))

    def places(self, devices: Any) -> Any:
        return uniform(self.scheme.survey.one_in).sample(self.keyring.draws(("place", *self._survey), devices))

    def cells(self, question: Question, devices: Any, values: Any) -> Any:
        return question.mechanism.encoding.cells(values, self.traits(question, devices))

    def traits(self, question: Question, devices: Any) -> Any:
        return question.mechanism.encoding.traits(self.keyring.draws(self._lifelong("trait", question), devices))

    def _lifelong(self, what: str, question: Question) -> tuple[str, ...]:
        return what, *self._survey, question.name


def at(day: int) -> float:
    return datetime(2026, 1, day, 12, tzinfo=timezone.utc).timestamp()  # noqa: UP017


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return Path(shutil.copy(MOVED, tmp_path / "device"))


def test_memos_traits_and_the_sampled_question_stay_what_they_were(path: Path) -> None:
    document = stored("python", path)
    old = {survey: joined["terms"].encode() for survey, joined in document["surveys"].items()}
    assert set(old) == {"capped", "several", "fakes", "hashed", "turns", "place"}
    del old["place"]  # of version 1: devices go on with it, and nobody else compiles it
    for scheme in map(decode_terms, old.values()):
        theirs = OldRespondent(scheme, Keyring(SECRET))
        ours = Answering(read_terms(scheme.terms), document, lambda _: bytes(32))
        if scheme.sampling:
            assert ours.sampled == int(theirs.sampled(ALONE)[0])
        if scheme.takes_turns:
            assert [ours.answers_in(period) for period in range(4)] == [
                bool(theirs.answering(ALONE, period)[0]) for period in range(4)
            ]
        for asked in ours.asked if scheme.survey.longitudinal else ():
            for question in asked.questions:
                known = scheme.question(question.name)
                for value in range(question.k):
                    cell = int(theirs.cells(known, ALONE, np.array([value]))[0])
                    place = {source.name: value for source in question.sources}
                    assert ours.cell(asked, question, place, b"") == cell
                    own = not scheme.questions[0].faked or question.name == scheme.questions[ours.sampled].name
                    memo = question.memoise(cell, own, ours._draws(asked, question, "memo", cell))
                    expected = theirs.memoise(known, ALONE, np.array([cell]))[0]
                    assert memo == int.from_bytes(expected.tobytes(), "little")


def test_it_owes_the_same_bytes_and_goes_on_where_it_was(path: Path) -> None:
    base = sqlite3.connect(OLD)
    owed = dict(base.execute("select survey, report from owed").fetchall())
    base.close()
    moment = [at(3)]
    with Device(path, now=lambda: moment[0], limits=Limits(**ANY)) as device:
        for survey, report in owed.items():
            assert [each.report for each in device.owed(survey)] == [report]
            assert device.settle(survey, {"a": 0, "b": 0}).report == report
        assert stored("python", path)["surveys"]["capped"]["cells"]["a"] == [1, 2]
        charged = device.explain()["year"]["charged"]
        moment[0] = at(5)
        gaps = {survey: json.loads(device.settle(survey, {"a": 0, "b": 0}).report)["gap"] for survey in owed}
        assert gaps == {survey: "0002" if survey == "capped" else "0001" for survey in owed}
        assert device.explain()["year"]["charged"] >= charged > 0


def test_places_of_version_1_may_cost_a_cell_side_what_they_declared_then(path: Path, library: str) -> None:
    terms = stored("python", path)["surveys"]["place"]["terms"].encode()
    today = json.dumps({**json.loads(terms), "version": 2}).encode()
    with open_device(library, path.parent / "new", Clock(at(3)), Limits(**ANY), entropy="places") as device:
        with pytest.raises(DeviceError, match="reveal more than it declares"):
            device.join(today, trust_first_use=True)
        device.join(terms, trust_first_use=True)


def test_a_file_that_was_not_moved_is_refused_and_left_as_it_is(tmp_path: Path, library: str) -> None:
    old = {"python": OLD, "javascript": OLD_JAVASCRIPT}[library]
    path = Path(shutil.copy(old, tmp_path / "device"))
    with (
        pytest.raises(DeviceError, match="open it once with release 0"),
        open_device(library, path, Clock(at(3)), Limits(**ANY), entropy="old") as device,
    ):
        device.owed("capped")
    assert path.read_bytes() == old.read_bytes()


@pytest.fixture
def upgraded(tmp_path: Path) -> Path:
    return Path(shutil.copy(OF_0_2, tmp_path / "upgraded"))


def test_a_device_that_is_upgraded_between_two_periods_gives_the_same_memos(upgraded: Path) -> None:
    for survey, said in SAID_BY_0_2["memos"].items():
        assert len({answer for _, answer in said}) > 2
        for number, (values, answer) in enumerate(said):
            copy = Path(shutil.copy(upgraded, upgraded.with_name(f"{survey} {number}")))
            with Device(copy, now=lambda: at(4), limits=Limits(**ANY)) as device:
                assert json.loads(device.settle(survey, values).report)["answers"] == {"a": answer}


def test_keys_of_questions_cells_charges_and_owed_bytes_survive_an_upgrade(upgraded: Path) -> None:
    before = stored("python", upgraded)
    assert before["format"] == 3
    with Device(upgraded, now=lambda: at(3), limits=Limits(**ANY)) as device:
        year = device.explain()["year"]
        assert year["charged"] == pytest.approx(SAID_BY_0_2["charged"])
        assert year["answers"] == device.explain()["answers"] == SAID_BY_0_2["answers"]
        for survey, report in SAID_BY_0_2["owed"].items():
            assert [each.report.decode() for each in device.owed(survey)] == [report]
            assert device.settle(survey, {}).report.decode() == report
    now = stored("python", upgraded)
    assert now["format"] == 4
    for kept in ("keys", "kept", "charges"):
        assert now[kept] == before[kept]
    for survey, joined in before["surveys"].items():
        for kept in ("cells", "stays", "asked", "settled", "terms", "fingerprint", "credential"):
            assert now["surveys"][survey][kept] == joined[kept]


def test_an_upgrade_erases_the_keys_of_later_periods_from_the_disk(upgraded: Path) -> None:
    keys = [joined["key"].encode() for joined in stored("python", upgraded)["surveys"].values()]
    assert all(key in upgraded.read_bytes() for key in keys)
    Device(upgraded, now=lambda: at(4), limits=Limits(**ANY)).close()
    files = list(upgraded.parent.iterdir())
    assert upgraded.with_name("upgraded-journal") in files
    for file in files:
        assert not [key for key in keys if key in file.read_bytes()], file.name


def test_the_days_since_an_upgrade_are_not_more_than_the_machine_ran(upgraded: Path) -> None:
    """Otherwise whoever sets the clock forward, and then upgrades, renews all limits."""
    clock = Clock(at(3) + 400 * 86400, running=60.0)
    with open_device("python", upgraded, clock, Limits(**ANY)) as device:
        assert device.explain()["year"]["answers"] == SAID_BY_0_2["answers"]
