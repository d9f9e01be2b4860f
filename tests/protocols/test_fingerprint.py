"""The fingerprint covers declared terms and what they resolve to: mechanisms and all integers of their tables."""

import importlib
import json
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hearsay.survey_files import example
from lab.seeded_keyrings import seeded_keyring
from protocols.mechanisms import RECORDS
from protocols.mechanisms.catalogue import build
from protocols.mechanisms.places.law import cuts, weights
from protocols.mechanisms.record import USES, Use
from protocols.randomness.sampling import Rows, Table, digest
from protocols.respondent import Respondent
from protocols.scheme import Scheme
from protocols.survey import Survey
from tests.clients.cases import BUDGETS, scenarios, table_cases
from tests.helpers.another_release import never_choose
from tests.helpers.surveys import of_size, scheme_with
from tests.protocols.test_survey import PRIORS, load

CHANGED = json.loads((Path(__file__).parent / "changed_terms.json").read_text())


def fingerprint(change: dict[str, Any]) -> str:
    return Scheme(load(change)).fingerprint


PINNED = "639507f05b7aef8e18bf0b820c6a2361"


def test_the_fingerprint_never_changes_by_itself() -> None:
    """If this fails, reports in flight and devices' memos are refused: raise TERMS_VERSION, and only on purpose."""
    assert fingerprint({}) == PINNED


OTHERS = "27a101c5396e5a2442e9d3a5e0c249e3914f9e9967fca87371df8df68649b07e"  # of 86 surveys
EXAMPLES = {
    "demand-year": "65d5e11a293114e46ddccd76593da90c",
    "mobility-week": "05eff60d10c384d3fab0f509c7a57e74",
    "telemetry": "64c1ff353f9ec44de4d07df22ab99cc6",
}


def test_what_version_2_of_the_terms_changed_for_places_changed_nothing_else() -> None:
    """Examples, and all surveys of the vectors without places, as they were before."""
    before = {
        "telemetry": {"horizon": 7, "visitors": None, "central": None},  # it has calendar visitors and central since
        "demand-year": {"eps_inf": 4, "eps_1": 2, "memo_cap": None},
    }
    surveys = {name: Survey.model_validate(example(name).model_dump() | before.get(name, {})) for name in EXAMPLES}
    assert {name: Scheme(survey).fingerprint for name, survey in surveys.items()} == EXAMPLES
    cases = [*table_cases(), *((each["name"], scheme) for each in scenarios() for scheme in each["schemes"])]
    placed = {scheme.survey.id: scheme for _, scheme in cases if any(a.placed for a in scheme.survey.attributes)}
    assert placed and all(b'"version":2' in scheme.terms for scheme in placed.values())
    newer = [any(a.placed or a.several or a.mechanism == "threshold" for a in s.survey.attributes) for _, s in cases]
    others = [scheme for (_, scheme), new in zip(cases, newer, strict=True) if not new]
    listed = "\n".join(sorted(f"{scheme.survey.id} {scheme.fingerprint}" for scheme in others))
    assert sha256(listed.encode()).hexdigest() == OTHERS


@pytest.mark.parametrize("change", CHANGED["same fingerprint"])
def test_words_and_ways_of_writing_do_not_change_the_fingerprint(change: dict[str, Any]) -> None:
    assert fingerprint(change) == fingerprint({})


def test_every_term_changes_the_fingerprint() -> None:
    fingerprints = [fingerprint(change) for change in ({}, *CHANGED["other fingerprints"])]
    assert len(set(fingerprints)) == len(fingerprints)


def test_a_value_called_title_is_a_term() -> None:
    shares = [{"title": 0.5, "groups": 0.5}, {"title": 0.25, "groups": 0.75}]
    attributes = [[PRIORS["attributes"][1], {"name": "a", "values": list(share), "prior": share}] for share in shares]
    one, other = (fingerprint({"solution": "rs+rfd", "attributes": each}) for each in attributes)
    assert one != other


@pytest.fixture
def rebuilt() -> Iterator[None]:
    """Mechanisms are built anew for the test, and again after it."""
    build.cache_clear()
    yield
    build.cache_clear()


def test_another_choice_for_the_same_file_changes_the_fingerprint(monkeypatch: pytest.MonkeyPatch) -> None:
    before = Scheme(load({}))
    never_choose(monkeypatch, before.questions[0].label)
    after = Scheme(load({}))
    assert after.survey == before.survey and after.questions[0].label != before.questions[0].label
    assert after.fingerprint != before.fingerprint


LIBRARY_FUNCTIONS = {
    "protocols.mechanisms.rounds": ("log", "log1p"),
    "protocols.privacy.linked": ("log",),
    "protocols.privacy.hidden": ("log", "exp", "log1p", "expm1"),
}


@pytest.mark.usefixtures("rebuilt")
@pytest.mark.parametrize("guarantee", ["tuple", "attribute", "published"])
def test_a_machine_whose_logarithms_differ_in_the_last_bit_has_the_same_fingerprint(
    monkeypatch: pytest.MonkeyPatch, guarantee: str
) -> None:
    """C libraries and processors round exponentials and logarithms differently; the tables must not show it."""
    lone = [{"eps_inf": 2.0, "eps_1": 0.6}, {"eps_inf": 2.0}, {"eps": 1.0}]
    mechanisms = [
        (name, budgets)
        for use, budgets in zip(("two rounds", "memo only", "one-shot"), lone, strict=True)
        for name in RECORDS
        if RECORDS[name].fits(use) and not RECORDS[name].needs_grid  # type: ignore[arg-type]
    ]

    def fingerprints() -> list[str]:
        build.cache_clear()
        alone = [scheme_with(of_size(20, "a", mechanism=name), **budgets) for name, budgets in mechanisms]
        hidden = [
            scheme_with(of_size(5, "a"), of_size(7, "b"), **budgets, solution="rs+fd", guarantee=guarantee)
            for budgets in lone
        ]
        weights.cache_clear()
        cuts.cache_clear()
        grid = {"at": [47, 6], "cell": 500, "columns": 9, "rows": 7}
        places = scheme_with({"name": "a", "grid": grid, "geo": {"level": 1, "radius": 700}})
        return [scheme.fingerprint for scheme in (*alone, *hidden, places)]

    before = fingerprints()
    for module, names in LIBRARY_FUNCTIONS.items():
        for name in names:
            function = getattr(importlib.import_module(module), name)
            monkeypatch.setattr(f"{module}.{name}", _rounded_up(function))
    for name in ("exp", "log", "logaddexp"):
        monkeypatch.setattr(np, name, _rounded_up(getattr(np, name)))
    assert fingerprints() == before


def _rounded_up(function: Callable[..., Any]) -> Callable[..., Any]:
    def rounded(*arguments: Any) -> Any:
        up = np.nextafter(function(*arguments), np.inf)
        return up if isinstance(up, np.ndarray) else float(up)

    return rounded


CASES = [(use, name) for use in USES for name in RECORDS if RECORDS[name].fits(use) and not RECORDS[name].needs_grid]


@pytest.mark.parametrize(("use", "name"), CASES)
def test_whatever_is_drawn_with_is_in_the_tables_and_nothing_else_is(
    use: Use, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Failure would look like: a table that may differ between two releases under one fingerprint."""
    shares = {"prior": [0.1, 0.2, 0.3, 0.4]} if use == "rs+rfd" else {}
    attributes = [of_size(4, attribute, mechanism=name, **shares) for attribute in ("a", "b")]
    scheme = scheme_with(*attributes, **BUDGETS[use])
    sampled: set[str] = set()
    for sampler in (Table, Rows):
        monkeypatch.setattr(sampler, "sample", _noting(sampler.sample, sampled))
    respondent, devices = Respondent(scheme, seeded_keyring(1)), np.arange(50, dtype=np.uint64)
    question = scheme.questions[0]
    respondent.answers(question, devices, 0, np.arange(50) % 4)
    listed = {each for tables in question.tables.values() for each in tables}
    if name == "loloha":
        listed.remove(question.tables["traits"][1])  # the hashes themselves, of which one is drawn
    if name in ("dbitflip", "threshold"):
        listed.remove(question.tables["traits"][0])  # drawn below, without a table
    if question.faked:
        listed.add(digest(Table([1.0] * 2).integers))  # which attribute is the device's own
    assert sampled == listed


def _noting(sample: Any, into: set[str]) -> Any:
    def noted(self: Table | Rows, *arguments: Any, **options: Any) -> Any:
        into.add(digest(self.integers))
        return sample(self, *arguments, **options)

    return noted
