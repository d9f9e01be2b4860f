"""The visitors of a window by one attribute, and what its role adds: rankings, dwell times and amounts."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from analytics.estimation.consistent_shares import shortened
from analytics.estimation.estimates import CONFIDENCE, Estimates, product, quantile
from analytics.mobility.answers import Answers
from analytics.mobility.model import (
    Amount,
    AmountQuantile,
    AskedAttribute,
    AttributeReport,
    Axis,
    Counted,
    Dwell,
    Place,
    Ranking,
    Shares,
    Sizes,
    Trips,
    quantities,
    quantity,
)
from protocols.arrays import Floats, Places
from protocols.question import Question
from protocols.survey import Thresholds, dwell_times, origin_and_destination

DRAWS = 2000
RIVALS = 25  # areas below the ranking that are considered too
QUARTERS = (0.25, 0.5, 0.75)


def rank(frequencies: Floats, spread: Callable[[Places], Floats], places: int) -> tuple[Places, Floats, float]:
    """The busiest areas, each one's probability of being in its place, and that of the whole ranking.

    `spread` gives the covariance of the estimates of some areas. Possible truths are drawn around the estimates with
    that covariance; a probability is the share of them that agree. The seed is fixed, so results are reproducible.

    >>> sure = lambda areas: np.eye(len(areas)) * 1e-6
    >>> order, probabilities, whole = rank(np.array([0.2, 0.5, 0.3]), sure, places=2)
    >>> order.tolist(), probabilities.tolist(), whole
    ([1, 2], [1.0, 1.0], 1.0)
    """
    order = np.argsort(-frequencies, kind="stable")
    rivals = order[: places + RIVALS]
    variances, axes = np.linalg.eigh(spread(rivals))  # which may be singular
    root = axes * np.sqrt(np.maximum(variances, 0)) @ axes.T  # the only symmetric one: axes depend on the processor
    drawn = frequencies[rivals] + np.random.default_rng(0).standard_normal((DRAWS, len(rivals))) @ root
    ahead = [np.count_nonzero(drawn > drawn[:, [place]], axis=1) for place in range(min(places, len(rivals)))]
    right = np.stack(ahead, axis=1) == np.arange(len(ahead))
    return order[:places], right.mean(axis=0), float(right.all(axis=1).mean())


def dwell(answers: Answers) -> Dwell:
    """The summary of a window's dwell times."""
    attribute = answers.question.attribute
    times, unit = dwell_times(attribute.values)
    mean, named = _mean(answers, np.array(times).mean(axis=1)), dict[str, Any]()
    for name, places in zip(("low", "quartiles", "high"), _quantiles(answers, QUARTERS), strict=True):
        named[name] = tuple(attribute.values[place] for place in places)
    return Dwell(unit=unit, mean=quantity(mean), **named)


def amount(answers: Answers) -> Amount:
    """The summary of a window's numbers."""
    attribute = answers.question.attribute
    if isinstance(attribute, Thresholds):
        return _above_thresholds(attribute, answers)
    ends = np.array(attribute.numbers)
    middles, mean = ends.mean(axis=1), _mean(answers, ends.mean(axis=1))
    found = zip(attribute.quantiles, *_quantiles(answers, attribute.quantiles), strict=True)
    return Amount(
        mean=quantity(mean),
        sum=quantity(product(mean, answers.everybody)),
        off=float(np.ptp(ends, axis=1).max() / 2),
        quantiles=tuple(
            AmountQuantile(at=at, value=middles[place], low=ends[low, 0], high=ends[high, 1])
            for at, low, place, high in found
        ),
    )


def _above_thresholds(attribute: Thresholds, answers: Answers) -> Amount:
    """The same if answers tell what is above thresholds: in units of the range, the mean is the share of all."""
    slots = answers.channel.k // 2
    above = np.arange(answers.channel.k) < slots
    passed = answers.of_groups(above[None, :])
    at = attribute.numbers_at
    value, low, high = (at(float(part[0]) / slots) for part in (passed.value, passed.low, passed.high))
    error = passed.error[0] / slots * (at(1) - at(0))
    mean = Estimates(*map(np.asarray, (value, error, low, high)))
    return Amount(
        mean=quantity(mean),
        sum=quantity(product(mean, answers.everybody)),
        off=float(np.ptp(attribute.number.numbers[0]) / 2),
        quantiles=_between_slots(attribute, answers, slots) if slots > 1 else (),
        top=quantity(answers.shares[slots - 1]),
    )


def _between_slots(attribute: Thresholds, answers: Answers, slots: int) -> tuple[AmountQuantile, ...]:
    """The quantiles of numbers that are asked by thresholds, as far as the slots with answers tell them.

    A quantile can be in a slot unless too few numbers are above the slot before, or too many above the one after. Its
    value is between the middles of slots with answers, at both ends of the range all numbers and none are above. Where
    a slot has no answer, a quantile that can be in every slot is left out: nothing is known about it.
    """
    shares, falling = answers.shares, answers.consistent.value[:slots]
    before = np.append(1.0, shares.high[: slots - 1])
    after = np.append(shares.low[1:slots], 0.0)
    known = np.isfinite(falling)
    middles = (np.arange(slots) + 0.5) / slots
    numbers = np.concatenate([[0.0], middles[known], [1.0]])
    above = np.concatenate([[1.0], falling[known], [0.0]])
    quantiles = []
    for level in attribute.quantiles:
        (kept,) = np.nonzero((before >= 1 - level) & (1 - level >= after))
        if len(kept) == slots and not known.all():
            continue
        found = float(np.interp(level - 1, -above, numbers))
        low = min(found, kept.min(initial=slots) / slots)
        high = max(found, (kept.max(initial=-1) + 1) / slots)
        at = attribute.numbers_at
        quantiles.append(AmountQuantile(at=level, value=at(found), low=at(low), high=at(high)))
    return tuple(quantiles)


def _mean(answers: Answers, middles: Floats) -> Estimates:
    value, error = answers.shares.value @ middles, np.sqrt(max(float(middles @ answers.covariance() @ middles), 0))
    half_width = quantile(CONFIDENCE) * error
    return Estimates(*map(np.asarray, (value, error, value - half_width, value + half_width)))


def _quantiles(answers: Answers, levels: Sequence[float]) -> tuple[Places, Places, Places]:
    """The places of the values of quantiles: the lower ends of their intervals, the quantiles, and the upper ends.

    A value can be the quantile unless the band is above it before, or below it here. Noisy bands go up and down: the
    last such value is where the lower band has passed for good, not where it first passes.
    """
    cumulative = answers.of_groups(np.tri(len(answers.counts), dtype=np.bool_))
    found = _crossings(np.cumsum(answers.consistent.value), levels)
    low = _crossings(cumulative.high, levels)
    high = _crossings(np.minimum.accumulate(cumulative.low[::-1])[::-1], levels)
    return np.minimum(low, found), found, np.maximum(high, found)  # the consistent histogram may lie outside


def _crossings(cumulative: Floats, levels: Sequence[float]) -> Places:
    """The places of the values at which the cumulative share first reaches each level."""
    rising = np.maximum.accumulate(cumulative)
    return np.minimum(np.searchsorted(rising, np.array(levels) - 1e-12), len(rising) - 1)


PLACES = 5


def asked_attribute(question: Question) -> AskedAttribute:
    """What the columns about an attribute have entries for."""
    attribute = question.attribute
    return AskedAttribute(
        name=question.name,
        role=question.role,
        mechanism=question.label,
        values=question.items.values,
        several=attribute.several,
        groups=tuple(attribute.groups),
        places=_trip_places(question),
        axes=axes_of(question),
    )


def _trip_places(question: Question) -> tuple[str, ...]:
    pairs = map(origin_and_destination, question.items.values if question.role == "transition" else ())
    return tuple(dict.fromkeys(place for both in pairs for place in both))


def axes_of(question: Question) -> tuple[Axis, ...]:
    """The two attributes of a cross, as they are published; none otherwise."""
    return tuple(Axis(name=axis.name, values=axis.values, groups=tuple(axis.groups)) for axis in question.axes)


def attribute_report(question: Question, released: Mapping[str, Answers], counted: Counted) -> AttributeReport:
    """Everything published about one attribute in one window. `released` has the answers to each question.

    `counted` says which reports they are from.
    """
    answers = released.get(question.name)
    header = AttributeReport(
        name=question.name,
        counted=counted,
        n=None if answers is None else answers.n,
        suppressed="minimum" if answers is None else None,
    )
    if answers is None or answers.n <= 0:
        return header
    margins = [_known(released.get(axis.name)) for axis in question.axes]
    role = question.attribute.role
    published = {
        "values": Shares(share=quantities(answers.shown[: question.items.k]), **answers.fitted(margins)),
        "groups": _groups(answers),
        "sizes": sizes_of(answers),
        "ranking": _ranking(answers) if role == "area" else None,
        "dwell": dwell(answers) if role == "dwell" else None,
        "amount": amount(answers) if role == "amount" else None,
        "trips": _trips(answers) if role == "transition" else None,
    }
    return header.model_copy(update=published)


def _known(answers: Answers | None) -> Answers | None:
    """The answers to an attribute of a cross; None where there are none."""
    return None if answers is None or answers.n <= 0 else answers


def sizes_of(answers: Answers) -> Sizes | None:
    """The sizes of sets as they are published; None where devices have one value."""
    found = answers.sizes
    if found is None:
        return None
    return Sizes(share=quantities(found[:-1]), mean=quantity(found[-1]), full=quantity(found[-2]))


def _groups(answers: Answers) -> Shares | None:
    if not answers.question.attribute.groups:
        return None
    return Shares(share=quantities(shortened(answers.of_groups(answers.question.members))))


def _trips(answers: Answers) -> Trips:
    """Row and column sums, which are groups of values."""
    places = {name: place for place, name in enumerate(_trip_places(answers.question))}
    ends = np.full((2, answers.channel.k), -1)
    for value, both in enumerate(map(origin_and_destination, answers.question.items.values)):
        ends[:, value] = places[both[0]], places[both[1]]
    began, ended = (answers.of_groups(side == np.arange(len(places))[:, None]) for side in ends)
    return Trips(began=quantities(shortened(began)), ended=quantities(shortened(ended)))


def _ranking(answers: Answers) -> Ranking:
    order, probabilities, whole = rank(answers.shares.value, answers.covariance, PLACES)
    people = product(answers.shown, answers.everybody)
    names = answers.question.attribute.values
    return Ranking(
        places=tuple(
            Place(place=place, value=names[value], people=quantity(people[value]), probability=float(probability))
            for place, (value, probability) in enumerate(zip(order, probabilities, strict=True), start=1)
        ),
        probability=whole,
    )
