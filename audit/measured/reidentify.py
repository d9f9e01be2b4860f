"""Finding people of another table by their answers to several surveys (docs/audit.md, section 4).

Every record of the background is scored by how likely it makes all that was seen of a device. The published attacker
guesses a value from each answer instead, and counts how many of them a record has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from audit.intervals import Trials
from audit.likelihoods.linked import linked
from protocols.arrays import Column, Devices, Floats, Places, Traits, Whole
from protocols.question import Question
from protocols.scheme import Scheme

CELLS = 1 << 21  # scores at once: bounds the memory
SAME = 1e-9
TOPS = (1, 10)

Choice = Literal["uniform", "non-uniform"]
Table = Mapping[str, Whole]  # a value of every attribute for every record
Answer = Callable[[Question, Devices, int, Whole], Column]
Traited = Callable[[Question, Devices], Traits]


@dataclass(frozen=True, eq=False)
class Seen:
    """What one or more linked answers say about a value: of some targets, [target, value] of one attribute.

    Parts with the same `group` (0 or more) are answers of one report of which only one is true: likelihood ratios of
    true to fake add up before the logarithm is taken.
    """

    name: str
    targets: Places
    scores: Floats
    group: int | None = None


@dataclass(frozen=True)
class Found:
    """How often a target was among the first 1 and 10 candidates, and how many candidates were as good, per target."""

    hits: dict[int, Trials]
    crowds: Floats


def chosen_attributes(
    random: np.random.Generator, targets: int, attributes: int, surveys: int, choice: Choice
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


def seen_by_smp(
    scheme: Scheme, picks: Whole, devices: Devices, values: Table, answer: Answer, traits: Traited
) -> list[Seen]:
    """What is seen where each survey gets one answer of each target; repeated attributes are linked by their memo."""
    memoised, found = scheme.survey.longitudinal, []
    for place, question in enumerate(scheme.questions):
        mine = picks == place  # [survey, target]
        patterns, group = np.unique(mine, axis=1, return_inverse=True)
        for number, pattern in enumerate(patterns.T):
            if not pattern.any():
                continue
            targets = np.flatnonzero(group.ravel() == number)
            some, own = devices[targets], values[question.name][targets]
            reports = [answer(question, some, int(survey), own) for survey in np.flatnonzero(pattern)]
            likely = linked(question, reports, traits(question, some), memoised)
            found.append(Seen(question.name, targets, likely.values))
    return found


def seen_of_tuples(
    scheme: Scheme, survey: int, devices: Devices, values: Table, answer: Answer, traits: Traited
) -> list[Seen]:
    """What is seen of one survey where a report answers all its attributes: each is true, or one of them."""
    found = []
    everybody = np.arange(len(devices))
    for question in scheme.questions:
        report = answer(question, devices, 0, values[question.name])
        likely = linked(question, [report], traits(question, devices), scheme.survey.longitudinal)
        scores = likely.values if likely.fake is None else likely.values - likely.fake[:, None]
        found.append(Seen(question.name, everybody, scores, survey if question.faked else None))
    return found


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
        evidence = np.array([np.log(np.exp(part.scores).mean(axis=1)) for part in parts])
        likeliest = (evidence + 1e-9 * random.random(evidence.shape)).argmax(axis=0)
        found += [_one_guess(part, random, likeliest == place) for place, part in enumerate(parts)]
    return found


def _one_guess(part: Seen, random: np.random.Generator, counts: Whole) -> Seen:
    near = part.scores >= part.scores.max(axis=1, keepdims=True) - SAME
    value = np.where(near, random.random(near.shape), -1.0).argmax(axis=1)
    scores = np.zeros_like(part.scores)
    scores[np.arange(len(value)), value] = counts
    return Seen(part.name, part.targets, scores)


def rank(seen: Sequence[Seen], targets: Table, background: Table, known: Sequence[str]) -> Found:
    """Rank all records of the background for every target, by the attributes that the attacker knows.

    A target with G better and T equal records is among the first K with chance (K - G) / T. Its own record must be in
    the background; a target without one is never found.
    """
    parts = [part for part in seen if part.name in known]
    parts += [_of_any_value(part) for part in seen if part.name not in known and part.group is not None]
    records = {part.name: np.asarray(background[part.name], dtype=np.intp) for part in parts}
    count, size = (len(next(iter(table.values()))) for table in (targets, background))
    hits, crowds, there = dict.fromkeys(TOPS, 0.0), np.empty(count), _in_background(targets, background)

    def of_records(part: Seen, rows: Places) -> Floats:
        return part.scores[rows][:, records[part.name]]

    def of_their_own(part: Seen, rows: Places) -> Floats:
        return part.scores[rows, targets[part.name][part.targets[rows]]][:, None]

    step = max(1, CELLS // max(1, size))
    for first in range(0, count, step):
        rows = np.arange(first, min(first + step, count))
        scores, own = _added(parts, rows, size, of_records), _added(parts, rows, 1, of_their_own)
        better = (scores > own + SAME).sum(axis=1)
        equal = np.maximum((abs(scores - own) <= SAME).sum(axis=1), 1)
        crowds[rows] = better + equal / 2
        for top in TOPS:
            hits[top] += float((np.clip((top - better) / equal, 0, 1) * there[rows]).sum())
    return Found({top: Trials(right, count) for top, right in hits.items()}, crowds)


def _of_any_value(part: Seen) -> Seen:
    """An answer about an attribute that the attacker does not know: it may be the true one, whatever its value."""
    mean = np.log(np.exp(part.scores).mean(axis=1, keepdims=True))
    return Seen(part.name, part.targets, np.broadcast_to(mean, part.scores.shape), part.group)


def _added(parts: Sequence[Seen], rows: Places, size: int, scores_of: Callable[[Seen, Places], Floats]) -> Floats:
    """The scores of some targets from all parts, `[target, record]`."""
    total = np.zeros((len(rows), size))
    groups: dict[int, Floats] = {}
    for part in parts:
        inside = np.flatnonzero((part.targets >= rows[0]) & (part.targets <= rows[-1]))
        if not len(inside):
            continue
        at, likely = part.targets[inside] - rows[0], scores_of(part, inside)
        if part.group is None:
            total[at] += likely
        else:
            groups.setdefault(part.group, np.zeros_like(total))[at] += np.exp(likely)
    for ratios in groups.values():
        total += np.log(np.maximum(ratios, 1e-300))
    return total


def _in_background(targets: Table, background: Table) -> Whole:
    """Whether each target's values are those of some record."""
    names = sorted(targets)
    records = {row.tobytes() for row in np.stack([np.asarray(background[n], dtype=np.int32) for n in names], axis=1)}
    wanted = np.stack([np.asarray(targets[name], dtype=np.int32) for name in names], axis=1)
    return np.array([row.tobytes() in records for row in wanted])


def without_noise(targets: Table, background: Table, known: Sequence[str], top: int) -> float:
    """How often a target is among the first candidates of somebody who knows its values: no attack does better."""
    names = sorted(known)
    table = np.stack([np.asarray(background[name], dtype=np.int32) for name in names], axis=1)
    kinds, counts = np.unique(table, axis=0, return_counts=True)
    sizes = {row.tobytes(): count for row, count in zip(kinds, counts, strict=True)}
    wanted = np.stack([np.asarray(targets[name], dtype=np.int32) for name in names], axis=1)
    return float(np.mean([min(1.0, top / sizes[row.tobytes()]) if row.tobytes() in sizes else 0.0 for row in wanted]))
