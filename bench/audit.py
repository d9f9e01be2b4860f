"""Audits: reports per second through device code, memo store, wire format and attack; and re-identification."""

from __future__ import annotations

from time import process_time

import numpy as np

from audit.intervals import Trials
from audit.measured import chosen_attributes, rank, seen_by_smp
from audit.report import Attack
from bench._tables import Table
from hearsay.auditing.auditing import Auditing
from hearsay.auditing.devices import InProcess, short_lived_store
from hearsay.auditing.populations import STEADY, named
from hearsay.running.seeded_keyrings import seeded_keyring
from hearsay.terminal.console import no_step
from protocols.respondent import Respondent
from protocols.scheme import Scheme
from protocols.survey import Survey

DEVICES, PERIODS, K = 200_000, 10, 40
RECORDS, TARGETS, SURVEYS = 45_000, 1_000, 5
SIZES = (74, 7, 16, 7, 14, 6, 5, 2, 41, 2)
A_MINUTE = 10_000_000  # reports
GUESS: tuple[Attack, ...] = ("guess",)


def run() -> Table:
    found = Table("Audits, on one core", ("", "seconds", "wanted"))
    seconds = _guesses() * A_MINUTE / (DEVICES * PERIODS)
    found.row(f"guesses: {A_MINUTE:,} reports of l-osue, k = {K}", f"{seconds:.0f}", "60")
    if seconds > 60:
        found.missed.append("guesses")
    seconds = _people()
    found.row(f"{TARGETS:,} people among {RECORDS:,} records, {SURVEYS} surveys", f"{seconds:.1f}", "10")
    if seconds > 10:
        found.missed.append("people")
    found.remarks.append(f"guesses: measured with {DEVICES:,} devices; time of this process, without its Redis")
    return found


def _survey(**terms: object) -> Survey:
    base = {"id": "bench", "start": "2026-01-01T00:00:00Z", "period": "1d"}
    return Survey.model_validate({**base, **terms})


def _guesses() -> float:
    attribute = {"name": "a", "range": {"last": K - 1}, "mechanism": "l-osue"}
    survey = _survey(eps_inf=2.0, eps_1=1.0, attributes=[attribute])
    auditing = Auditing(survey, None, GUESS, "best", "even", 0.01, 0, "")
    with short_lived_store() as store:
        way = InProcess(store, seeded_keyring(0))
        auditing.measured(named(survey, STEADY, 1000, 2, 0), way, no_step)  # compiles and imports
        people = named(survey, STEADY, DEVICES, PERIODS, 0)
        begun = process_time()
        auditing.measured(people, way, no_step)
        return process_time() - begun


def _people() -> float:
    attributes = [{"name": f"a{i}", "range": {"last": k - 1}, "mechanism": "oue"} for i, k in enumerate(SIZES)]
    scheme = Scheme(_survey(eps=4.0, attributes=attributes))
    random = np.random.default_rng(0)
    table = {f"a{i}": random.integers(k, size=RECORDS) for i, k in enumerate(SIZES)}
    targets = {name: column[:TARGETS] for name, column in table.items()}
    respondent = Respondent(scheme, seeded_keyring(0))
    picks, _ = chosen_attributes(random, TARGETS, len(SIZES), SURVEYS, "uniform")
    begun = process_time()
    devices = np.arange(TARGETS, dtype=np.uint64)
    seen = seen_by_smp(scheme, picks, devices, targets, respondent.answers, respondent.traits)
    found = rank(seen, targets, table, list(table))
    assert found.hits[1] != Trials()
    return process_time() - begun
