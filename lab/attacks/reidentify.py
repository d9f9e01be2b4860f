"""Finding people of another table by their answers to several surveys (docs/audit.md, section 4)."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

import numpy as np

from analytics.estimation import norm_sub
from lab.attacks.accuracy import SAME
from lab.attacks.forging import estimated
from lab.attacks.likelihoods import NEVER, chunks, linked
from lab.attacks.report import Attacker, Figure, Finding, Trials
from protocols.arrays import Devices, Floats, Places, Whole
from protocols.mechanisms import RECORDS
from protocols.question import Question
from protocols.randomness import Keyring
from protocols.respondent import Respondent
from protocols.scheme import Scheme
from protocols.survey import Survey

TOPS = (1, 10)
SURVEYS = 5
RUNS = 10  # intervals follow from the spread of runs: those of five runs would be 1.4 times as wide
TARGETS = 1000  # of all runs together
ANSWERING = 10_000  # people from whose answers a survey estimates shares: more would take longer than all attacks

Choice = Literal["uniform", "non-uniform"]
Table = Mapping[str, Whole]  # a value of every question for every record
Seen = dict[str, Floats]
"""What some answers say, by question and as logarithms `[target, value]`: likelihoods, or among fakes ratios of true to
fake. Of a target that did not answer, all are 0."""
Hits = dict[int, Trials]  # by how many candidates are looked at


@dataclass(frozen=True)
class Search:
    """Who is looked for (`people`), and where (`background`), by answers to surveys with the questions of one.

    Both tables have a column for each question; whoever knows both attributes of a cross knows its column.
    """

    survey: Survey
    people: Table
    background: Table
    attacker: Attacker
    alpha: float
    seed: int
    targets: int = TARGETS
    surveys: int = SURVEYS

    def run(self, keyring: Keyring, step: Callable[[int, int, str], None]) -> tuple[list[Figure], list[Finding]]:
        """Both ways to choose attributes, with all columns known and with half of them."""
        figures, findings = [], []
        choices: tuple[Choice, ...] = ("uniform", "non-uniform") if self.survey.solution == "smp" else ("uniform",)
        ways = [(choice, full) for choice in choices for full in (True, False)]
        records, times = len(next(iter(self.background.values()))), min(RUNS, self.targets)
        scores = {"best": "likelihoods", "published": "guesses values, counts equal ones (published attacker)"}
        for place, (choice, full) in enumerate(ways):
            runs, known = [], "all" if full else "some"
            for run in range(times):
                step(place * times + run, len(ways) * times, "re-identifying")
                runs.append(self._one(keyring, choice, full, run))
            hits, crowds, limits = zip(*runs, strict=True)
            for attacker, top in product(hits[0], TOPS):
                luck, best = min(1.0, top / records), float(np.mean([limit[top] for limit in limits]))
                each = [found[attacker][top] for found in hits]
                figures.append(
                    sum(each, Trials()).figure(
                        self.alpha, each, attack="reidentify", target=f"the first {top} of {records:,} records",
                        knows=f"{known} columns; {choice} choice; {scores[attacker]}", reports=self.surveys, luck=luck,
                        best=best, exact=False,
                    )
                )  # fmt: skip
            shares, crowd = [found["best"][1].share or 0.0 for found in hits], float(np.median(np.concatenate(crowds)))
            text = (
                f"{choice} choice of attributes, {known} columns known: the median target hides among {crowd:,.0f} "
                f"records; from run to run the first candidate is right in {min(shares):.2%} to {max(shares):.2%}."
            )
            findings.append(Finding(code="anonymity-sets", text=text))
        return figures, findings

    def _one(
        self, keyring: Keyring, choice: Choice, full: bool, run: int
    ) -> tuple[dict[Attacker, Hits], Floats, dict[int, float]]:
        """What each attacker finds in one run, among how many, and what somebody finds who knows the true values."""
        random = np.random.default_rng([self.seed, run, full])
        names = [attribute.name for attribute in self.survey.attributes]
        size = len(next(iter(self.people.values())))
        some = np.sort(random.choice(size, min(size, len(range(run, self.targets, RUNS))), replace=False))
        targets = {question.name: np.asarray(self.people[question.name])[some] for question in self.survey.asked}
        least = max(1, len(names) // 2)
        known = names if full else list(random.permutation(names)[: int(random.integers(least, len(names) + 1))])
        known = [*known, *(cross.name for cross in self.survey.crosses if set(cross.of) <= set(known))]
        picks, asked = chosen_attributes(random, len(some), len(self.survey.asked), choice, self.surveys)
        seen, shares, devices = list[Seen](), list[Mapping[str, Floats] | None](), some.astype(np.uint64)
        if self.survey.solution == "smp":
            respondent = own_respondent(self.survey, f"audit.people.{run}.{choice}", keyring)
            seen, shares, asked = [seen_by_smp(respondent, picks, devices, targets)], [None], []
        for number, subset in enumerate(asked):
            part = self.survey.model_copy(update={"attributes": tuple(self.survey.attributes[i] for i in subset)})
            if len(subset) == 1:
                part = asked_alone(part)
            respondent = own_respondent(part, f"audit.people.{run}.{number}", keyring)
            seen.append(seen_of_tuples(respondent, devices, targets))
            needed = self.attacker == "published" and respondent.scheme.questions[0].faked
            shares.append({name: self.estimated_shares(respondent, name) for name in seen[-1]} if needed else None)
        fakes = self.survey.solution.startswith("rs")
        limits = {top: without_noise(targets, self.background, known, top) for top in TOPS}
        best, crowds = rank(seen, targets, self.background, known, fakes)
        hits: dict[Attacker, Hits] = {"best": best}
        if self.attacker == "published":
            shown = [guessed(part, random, own) for part, own in zip(seen, shares, strict=True)]
            hits["published"] = rank(shown, targets, self.background, known)[0]
        return hits, crowds, limits

    def estimated_shares(self, respondent: Respondent, name: str) -> Floats:
        """The shares of values, as a survey that all people answer would publish them."""
        values, question = np.asarray(self.people[name])[:ANSWERING], respondent.scheme.question(name)
        reports = respondent.answers(question, np.arange(len(values), dtype=np.uint64), 0, values)
        return norm_sub(estimated(question, reports))


def asked_alone(survey: Survey) -> Survey:
    """A survey of one attribute: there are no fakes, so its mechanism is the one that they are made for."""
    (attribute,) = survey.attributes
    record = RECORDS.get(attribute.mechanism)
    if record is not None and record.fakes is not None:
        name = record.fakes.one_round if survey.eps_1 is None else record.fakes.two_rounds
        attribute = attribute.model_copy(update={"mechanism": name})
    return survey.model_copy(update={"solution": "smp", "attributes": (attribute,)})


def own_scheme(survey: Survey, name: str) -> Scheme:
    """The same questions under another id; the audit itself says which period it is."""
    return Scheme(survey.model_copy(update={"id": name, "clock": "source", "title": "", "description": ""}))


def own_respondent(survey: Survey, name: str, keyring: Keyring) -> Respondent:
    """Devices of this name alone: under one key, devices have the same memos in all surveys that ask the same."""
    return Respondent(own_scheme(survey, name), Keyring(keyring.key((name,))))


def chosen_attributes(
    random: np.random.Generator, targets: int, attributes: int, choice: Choice, surveys: int
) -> tuple[Whole, list[Places]]:
    """The attribute that each target answers in each survey, `[survey, target]`, and what each survey asks.

    A survey asks a random half or more of the attributes, but not all. Uniform: nobody answers an attribute twice; who
    draws one again answers another one that is left. Non-uniform: with replacement.
    """
    answered = np.zeros((targets, attributes), dtype=bool)
    rows, asked, picks = np.arange(targets), [], []
    for _ in range(surveys):
        most = max(1, attributes - 1)
        size = int(random.integers(min(max(1, attributes // 2), most), most + 1))
        subset = np.sort(random.choice(attributes, size, replace=False))
        pick = subset[random.integers(size, size=targets)]
        if choice == "uniform":
            weights = np.where(answered, -1.0, random.random((targets, attributes)))
            again = answered[rows, pick] & (weights.max(axis=1) >= 0)
            pick = np.where(again, weights.argmax(axis=1), pick)
        answered[rows, pick] = True
        asked.append(subset)
        picks.append(pick)
    return np.array(picks), asked


def seen_by_smp(respondent: Respondent, picks: Whole, devices: Devices, values: Table) -> Seen:
    """What is seen where each survey gets one answer of each target; repeated attributes are linked by their memo."""
    seen = {}
    for place, question in enumerate(respondent.scheme.questions):
        seen[question.name] = np.zeros((len(devices), question.k))
        patterns, group = np.unique(picks == place, axis=1, return_inverse=True)  # [survey, target]
        for number, surveys in enumerate(map(np.flatnonzero, patterns.T)):
            if len(surveys):
                targets = np.flatnonzero(group.ravel() == number)
                some = values[question.name][targets]
                seen[question.name][targets] = _seen(respondent, question, devices[targets], some, surveys.tolist())
    return seen


def seen_of_tuples(respondent: Respondent, devices: Devices, values: Table) -> Seen:
    """What is seen of one survey where a report answers all its attributes: each is true, or one of them."""
    return {q.name: _seen(respondent, q, devices, values[q.name], [0]) for q in respondent.scheme.questions}


def _seen(
    respondent: Respondent, question: Question, devices: Devices, values: Whole, periods: Sequence[int]
) -> Floats:
    reports = [respondent.answers(question, devices, period, values) for period in periods]
    memoised = respondent.scheme.survey.longitudinal
    return linked(question, reports, respondent.traits(question, devices), memoised).against_fake


def guessed(seen: Seen, random: np.random.Generator, shares: Mapping[str, Floats] | None = None) -> Seen:
    """The published attacker: guesses a value from each answer, of fakes only for the attribute that looks true.

    `shares` are those of values, as the survey estimates them; None: no answer is fake.
    """
    counts = np.array([scores.any(axis=1) for scores in seen.values()])
    if shares is not None:
        evidence = np.array([np.exp(scores) @ shares[name] for name, scores in seen.items()])
        counts = (evidence + 1e-9 * random.random(evidence.shape)).argmax(axis=0) == np.arange(len(seen))[:, None]
    found = {}
    for (name, scores), counted in zip(seen.items(), counts, strict=True):
        near = scores >= scores.max(axis=1, keepdims=True) - SAME
        value = np.where(near, random.random(near.shape), -1.0).argmax(axis=1)
        found[name] = np.zeros_like(scores)
        found[name][np.arange(len(value)), value] = counted
    return found


def rank(
    seen: Sequence[Seen], targets: Table, background: Table, known: Sequence[str], fakes: bool = False
) -> tuple[Hits, Floats]:
    """Rank all records of the background for every target, by the attributes that the attacker knows.

    Returns how often a target is among the first candidates, and how many candidates are as good, per target.
    A target with G better and T equal records is among the first K with chance (K - G) / T. Its own record must be in
    the background; a target without one is never found. With `fakes` one answer of each report is true.
    """
    count, size = (len(next(iter(table.values()))) for table in (targets, background))
    own = np.arange(size, size + count)  # the places of the targets' own values, after all records
    records = {name: np.concatenate([background[name], targets[name]]).astype(np.intp) for name in known}
    hits, crowds, everybody = dict.fromkeys(TOPS, 0.0), np.empty(count), set(_rows(background, targets))
    there = np.array([row in everybody for row in _rows(targets, targets)])
    for rows in chunks(np.arange(count), size + count):
        scores = np.zeros((len(rows), size + count))
        for part in seen:
            scores += _score({name: likely[rows] for name, likely in part.items()}, records, fakes)
        mine, others = scores[np.arange(len(rows)), own[rows]][:, None], scores[:, :size]
        better = (others > mine + SAME).sum(axis=1)
        equal = np.maximum((abs(others - mine) <= SAME).sum(axis=1), 1)
        crowds[rows] = better + equal / 2
        for top in TOPS:
            hits[top] += float((np.clip((top - better) / equal, 0, 1) * there[rows]).sum())
    return {top: Trials(right, count) for top, right in hits.items()}, crowds


def _score(seen: Seen, records: Table, fakes: bool) -> Floats:
    """The scores of records `[target, record]`; among fakes an unknown attribute may be true, whatever its value."""
    parts = [likely[:, records[name]] for name, likely in seen.items() if name in records]
    if not fakes:
        return np.asarray(np.sum(parts, axis=0))
    ratios = [np.exp(likely).mean(axis=1, keepdims=True) for name, likely in seen.items() if name not in records]
    return np.log(np.maximum(sum((np.exp(part) for part in parts), sum(ratios)), NEVER))


def without_noise(targets: Table, background: Table, known: Iterable[str], top: int) -> float:
    """How often a target is among the first candidates of somebody who knows its values: no attack does better."""
    sizes = Counter(_rows(background, known))
    wanted = [sizes[row] for row in _rows(targets, known)]
    return float(np.mean([min(1.0, top / size) if size else 0.0 for size in wanted]))


def _rows(table: Table, names: Iterable[str]) -> list[bytes]:
    """The values of each record."""
    columns = [np.asarray(table[name], dtype=np.int32) for name in sorted(names)]
    return [row.tobytes() for row in np.stack(columns, axis=1)]
