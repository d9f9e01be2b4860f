"""Re-identification, composed: people who answer several surveys, and a table in which somebody looks for them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from audit.intervals import Trials
from audit.measured import (
    TOPS,
    Choice,
    Found,
    Table,
    chosen_attributes,
    guessed,
    rank,
    seen_by_smp,
    seen_of_tuples,
    without_noise,
)
from audit.report import Attacker, Figure, Finding
from hearsay.auditing.devices import own_scheme
from hearsay.terminal.console import Step
from protocols.randomness import Keyring
from protocols.respondent import Respondent
from protocols.survey import Survey

SURVEYS = 5
RUNS = 5
TARGETS = 1000  # of all runs together


@dataclass(frozen=True)
class Reidentifying:
    """Who is looked for (`people`), where (`background`), and with which knowledge of its columns.

    Both tables have a column for each question; whoever knows both attributes of a cross knows its column.
    """

    survey: Survey
    people: Table
    background: Table
    attacker: Attacker
    alpha: float
    seed: int

    def run(self, keyring: Keyring, step: Step) -> tuple[list[Figure], list[Finding]]:
        """Both ways to choose attributes, with all columns known and with half of them."""
        figures, found = [], []
        choices: tuple[Choice, ...] = ("uniform", "non-uniform") if self.survey.solution == "smp" else ("uniform",)
        ways = [(choice, full) for choice in choices for full in (True, False)]
        for place, (choice, full) in enumerate(ways):
            runs = []
            for run in range(RUNS):
                step(place * RUNS + run, len(ways) * RUNS, "re-identifying")
                runs.append(self._one(keyring, choice, full, run))
            figures += self._figures(choice, full, runs)
            shares = [result.hits[1].share or 0.0 for result, _ in runs]
            crowd = float(np.median(np.concatenate([result.crowds for result, _ in runs])))
            known = "all" if full else "some"
            text = (
                f"{choice} choice of attributes, {known} columns known: the median target hides among {crowd:,.0f} "
                f"records; from run to run the first candidate is right in {min(shares):.2%} to {max(shares):.2%}."
            )
            found.append(Finding(code="anonymity-sets", text=text))
        return figures, found

    def _one(self, keyring: Keyring, choice: Choice, full: bool, run: int) -> tuple[Found, dict[int, float]]:
        random = np.random.default_rng([self.seed, run, full])
        names = [attribute.name for attribute in self.survey.attributes]
        questions = [asked.name for asked in self.survey.asked]
        size = len(next(iter(self.people.values())))
        some = np.sort(random.choice(size, min(size, TARGETS // RUNS), replace=False))
        targets = {name: np.asarray(self.people[name])[some] for name in questions}
        least = max(1, len(names) // 2)
        known = names if full else list(random.permutation(names)[: int(random.integers(least, len(names) + 1))])
        known = [*known, *(cross.name for cross in self.survey.crosses if set(cross.of) <= set(known))]
        picks, asked = chosen_attributes(random, len(some), len(questions), SURVEYS, choice)
        devices = some.astype(np.uint64)
        if self.survey.solution == "smp":
            scheme = own_scheme(self.survey, f"audit.people.{run}.{choice}")
            respondent = Respondent(scheme, keyring)
            seen = seen_by_smp(scheme, picks, devices, targets, respondent.answers, respondent.traits)
        else:
            seen = []
            for number, subset in enumerate(asked):
                part = self.survey.model_copy(update={"attributes": tuple(self.survey.attributes[i] for i in subset)})
                if len(subset) == 1:
                    part = part.model_copy(update={"solution": "smp"})
                scheme = own_scheme(part, f"audit.people.{run}.{number}")
                respondent = Respondent(scheme, keyring)
                seen += seen_of_tuples(scheme, number, devices, targets, respondent.answers, respondent.traits)
        if self.attacker == "published":
            seen = guessed(seen, random)
        limits = {top: without_noise(targets, self.background, known, top) for top in TOPS}
        return rank(seen, targets, self.background, known), limits

    def _figures(self, choice: Choice, full: bool, runs: list[tuple[Found, dict[int, float]]]) -> list[Figure]:
        figures, records = [], len(next(iter(self.background.values())))
        score = "counts equal values" if self.attacker == "published" else "likelihoods"
        for top in TOPS:
            trials = sum((result.hits[top] for result, _ in runs), Trials())
            low, high = trials.interval(self.alpha)
            figures.append(
                Figure(
                    attack="reidentify", target=f"the first {top} of {records:,} records",
                    knows=f"{'all' if full else 'some'} columns; {choice} choice; {score}", reports=SURVEYS,
                    unit="chance", luck=min(1.0, top / records), histogram=min(1.0, top / records),
                    measured=trials.share, low=low, high=high, trials=trials.count,
                    best=float(np.mean([limits[top] for _, limits in runs])), exact=False,
                )
            )  # fmt: skip
        return figures
