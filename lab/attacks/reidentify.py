"""Finding people of another table by their answers to several surveys (docs/audit.md, section 4).

Every record of the background is scored by how likely it makes all that was seen of a device. The published attacker
guesses a value from each answer instead, and counts how many of them a record has. Among fakes it first guesses the
true attribute, by the shares of values that the survey itself estimates, and uses no other answer of the report.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Literal

import numpy as np

from analytics.estimation import norm_sub
from lab.attacks.forging import estimated
from lab.attacks.likelihoods import chunks, linked
from lab.attacks.trials import Trials
from lab.audit.closed.guessing import SAME
from lab.audit.report import Attacker, Figure, Finding
from protocols.arrays import Devices, Floats, Mask, Places, Whole
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
Hits = dict[int, Trials]  # by how many candidates are looked at


@dataclass(frozen=True, eq=False)
class Seen:
    """What one or more linked answers say about a value: of some targets, [target, value] of one attribute.

    Parts with the same `group` (0 or more) are answers of one report of which only one is true: likelihood ratios of
    true to fake add up before the logarithm is taken. `shares` are those of values, as the survey
    estimates them: only the published attacker needs them.
    """

    name: str
    targets: Places
    scores: Floats
    group: int | None = None
    shares: Floats = field(default_factory=lambda: np.zeros(0))


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
                        histogram=luck, best=best, exact=False,
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
        devices = some.astype(np.uint64)
        if self.survey.solution == "smp":
            respondent = own_respondent(self.survey, f"audit.people.{run}.{choice}", keyring)
            seen = seen_by_smp(respondent, picks, devices, targets)
        else:
            seen = []
            for number, subset in enumerate(asked):
                part = self.survey.model_copy(update={"attributes": tuple(self.survey.attributes[i] for i in subset)})
                if len(subset) == 1:
                    part = part.model_copy(update={"solution": "smp"})
                respondent = own_respondent(part, f"audit.people.{run}.{number}", keyring)
                tuples = seen_of_tuples(respondent, number, devices, targets)
                if self.attacker == "published" and tuples[0].group is not None:
                    tuples = [replace(part, shares=self.estimated_shares(respondent, part.name)) for part in tuples]
                seen += tuples
        limits = {top: without_noise(targets, self.background, known, top) for top in TOPS}
        best, crowds = rank(seen, targets, self.background, known)
        hits: dict[Attacker, Hits] = {"best": best}
        if self.attacker == "published":
            hits["published"] = rank(guessed(seen, random), targets, self.background, known)[0]
        return hits, crowds, limits

    def estimated_shares(self, respondent: Respondent, name: str) -> Floats:
        """The shares of values, as a survey that all people answer would publish them."""
        values, question = np.asarray(self.people[name])[:ANSWERING], respondent.scheme.question(name)
        reports = respondent.answers(question, np.arange(len(values), dtype=np.uint64), 0, values)
        return norm_sub(estimated(question, reports))


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


def seen_by_smp(respondent: Respondent, picks: Whole, devices: Devices, values: Table) -> list[Seen]:
    """What is seen where each survey gets one answer of each target; repeated attributes are linked by their memo."""
    found = []
    for place, question in enumerate(respondent.scheme.questions):
        patterns, group = np.unique(picks == place, axis=1, return_inverse=True)  # [survey, target]
        for number, surveys in enumerate(map(np.flatnonzero, patterns.T)):
            if len(surveys):
                targets = np.flatnonzero(group.ravel() == number)
                found.append(_seen(respondent, question, targets, surveys.tolist(), devices, values))
    return found


def seen_of_tuples(respondent: Respondent, survey: int, devices: Devices, values: Table) -> list[Seen]:
    """What is seen of one survey where a report answers all its attributes: each is true, or one of them."""
    everybody, questions = np.arange(len(devices)), respondent.scheme.questions
    seen = [_seen(respondent, question, everybody, [0], devices, values) for question in questions]
    return [replace(part, group=survey) for part in seen] if questions[0].faked else seen


def _seen(
    respondent: Respondent, question: Question, targets: Places, periods: list[int], devices: Devices, values: Table
) -> Seen:
    some, own = devices[targets], values[question.name][targets]
    reports = [respondent.answers(question, some, period, own) for period in periods]
    likely = linked(question, reports, respondent.traits(question, some), respondent.scheme.survey.longitudinal)
    fake = 0.0 if likely.fake is None else likely.fake[:, None]
    return Seen(question.name, targets, likely.values - fake)


def guessed(seen: Sequence[Seen], random: np.random.Generator) -> list[Seen]:
    """The published attacker: guesses a value from each answer, of fakes only for the attribute that looks true."""
    whole: dict[int, list[Seen]] = {}
    found = []
    for part in seen:
        if part.group is not None:
            whole.setdefault(part.group, []).append(part)
        else:
            found.append(_one_guess(part, random, np.ones(len(part.targets), dtype=bool)))
    for parts in whole.values():
        evidence = np.array([np.exp(part.scores) @ part.shares for part in parts])
        likeliest = (evidence + 1e-9 * random.random(evidence.shape)).argmax(axis=0)
        found += [_one_guess(part, random, likeliest == place) for place, part in enumerate(parts)]
    return found


def _one_guess(part: Seen, random: np.random.Generator, counts: Mask) -> Seen:
    near = part.scores >= part.scores.max(axis=1, keepdims=True) - SAME
    value = np.where(near, random.random(near.shape), -1.0).argmax(axis=1)
    scores = np.zeros_like(part.scores)
    scores[np.arange(len(value)), value] = counts
    return Seen(part.name, part.targets, scores)


def rank(seen: Sequence[Seen], targets: Table, background: Table, known: Sequence[str]) -> tuple[Hits, Floats]:
    """Rank all records of the background for every target, by the attributes that the attacker knows.

    Returns how often a target is among the first candidates, and how many candidates are as good, per target.
    A target with G better and T equal records is among the first K with chance (K - G) / T. Its own record must be in
    the background; a target without one is never found.
    """
    parts = [part for part in seen if part.name in known]
    parts += [_of_any_value(part) for part in seen if part.name not in known and part.group is not None]
    count, size = (len(next(iter(table.values()))) for table in (targets, background))
    own = np.arange(size, size + count)  # the places of the targets' own values, after all records
    records = {part.name: np.concatenate([background[part.name], targets[part.name]]).astype(np.intp) for part in parts}
    hits, crowds, everybody = dict.fromkeys(TOPS, 0.0), np.empty(count), set(_rows(background, targets))
    there = np.array([row in everybody for row in _rows(targets, targets)])
    for rows in chunks(np.arange(count), size + count):
        scores = _added(parts, rows, records, size + count)
        mine, others = scores[np.arange(len(rows)), own[rows]][:, None], scores[:, :size]
        better = (others > mine + SAME).sum(axis=1)
        equal = np.maximum((abs(others - mine) <= SAME).sum(axis=1), 1)
        crowds[rows] = better + equal / 2
        for top in TOPS:
            hits[top] += float((np.clip((top - better) / equal, 0, 1) * there[rows]).sum())
    return {top: Trials(right, count) for top, right in hits.items()}, crowds


def _of_any_value(part: Seen) -> Seen:
    """An answer about an attribute that the attacker does not know: it may be the true one, whatever its value."""
    mean = np.log(np.exp(part.scores).mean(axis=1, keepdims=True))
    return Seen(part.name, part.targets, np.broadcast_to(mean, part.scores.shape), part.group)


def _added(parts: Sequence[Seen], rows: Places, records: Table, size: int) -> Floats:
    """The scores of some targets from all parts, `[target, record]`."""
    total = np.zeros((len(rows), size))
    groups: dict[int, Floats] = {}
    for part in parts:
        inside = np.flatnonzero((part.targets >= rows[0]) & (part.targets <= rows[-1]))
        if not len(inside):
            continue
        at, likely = part.targets[inside] - rows[0], part.scores[inside][:, records[part.name]]
        if part.group is None:
            total[at] += likely
        else:
            groups.setdefault(part.group, np.zeros_like(total))[at] += np.exp(likely)
    for ratios in groups.values():
        total += np.log(np.maximum(ratios, 1e-300))
    return total


def without_noise(targets: Table, background: Table, known: Iterable[str], top: int) -> float:
    """How often a target is among the first candidates of somebody who knows its values: no attack does better."""
    sizes = Counter(_rows(background, known))
    wanted = [sizes[row] for row in _rows(targets, known)]
    return float(np.mean([min(1.0, top / size) if size else 0.0 for size in wanted]))


def _rows(table: Table, names: Iterable[str]) -> list[bytes]:
    """The values of each record."""
    columns = [np.asarray(table[name], dtype=np.int32) for name in sorted(names)]
    return [row.tobytes() for row in np.stack(columns, axis=1)]
