"""The price of an answer, in a sentence: what it reveals, or how precise results will be."""

from __future__ import annotations

from collections.abc import Iterator
from math import log2
from typing import get_args

from protocols.errors import HearsayError
from protocols.planning import DEVICES, told_apart, widest_interval
from protocols.scheme import Scheme
from protocols.survey import Solution, Survey


def of_eps_inf(survey: Survey) -> str:
    """What all reports of a device reveal."""
    return (
        f"Price: whoever links all reports of a device guesses right which of two values it has in up to "
        f"{told_apart(survey.eps_inf or 0):.0%} of the cases (50% is chance)."
    )


def of_one_report(survey: Survey) -> str:
    """What one report reveals, and what remains of precision."""
    return (
        f"Price: from one report the guess is right in up to {told_apart(survey.eps_1 or survey.eps or 0):.0%} of the "
        f"cases. With {DEVICES:,} devices, a yes/no question is answered to {_points(survey)}."
    )


def of_horizon(survey: Survey) -> str:
    """What gaps reveal."""
    if survey.horizon == 1:
        return "Price: none. Reports of different periods are not connected."
    return (
        f"Price: a report says in which of the last {survey.horizon} periods its device reported before: up to "
        f"{log2(survey.horizon):.1f} bits that help to link reports."
    )


def of_values(survey: Survey) -> str:
    """How precise the shares of the attributes so far will be."""
    return f"Price: with {DEVICES:,} devices, shares are known to {_points(survey)}. More values cost precision."


def of_solutions(survey: Survey) -> Iterator[str]:
    """How precise shares will be with each solution that needs no priors."""
    for solution in get_args(Solution):
        if solution != "rs+rfd":
            try:
                shown = _points(survey.model_copy(update={"solution": solution}))
            except HearsayError as error:
                shown = error.message
            yield f"{solution}: {shown} with {DEVICES:,} devices"


def of_cap(survey: Survey) -> str:
    """What a device reveals whose value changes."""
    each = survey.eps_inf or 0
    most = max(attribute.k for attribute in survey.attributes)
    held = min(most, survey.memo_cap or most)
    limit = "The store must keep its data for the cap to hold." if survey.memo_cap else "There is no limit below that."
    return (
        f"Price: each further value that a device memoises costs up to {each:g} more; {held} values of an attribute, "
        f"up to {held * each:g}. {limit}"
    )


def of_minimum(survey: Survey) -> str:
    """How imprecise the smallest published result is."""
    if survey.minimum == 0:
        return "Price: results of very few people are published, with very wide intervals."
    return f"Price: none. The smallest published results are known to {_points(survey, survey.minimum)}."


def _points(survey: Survey, devices: int = DEVICES) -> str:
    return f"± {100 * widest_interval(Scheme(survey), devices):.2g} percentage points (95 %)"
