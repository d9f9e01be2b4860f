"""Crosses, which ask two attributes as one question about pairs; and the shares by which questions are drawn."""

from collections.abc import Iterable, Sequence
from itertools import product
from math import fsum
from typing import Final

from pydantic import Field

from protocols.mechanisms.record import MAX_VALUES
from protocols.survey.attribute import MIN_SHARE, PARAMETERS, Attribute, MechanismName, Share, refuse_twice
from protocols.survey.names import Strict

TIMES: Final = "*"
"""Between the names of two attributes, of two values, and of a group and a value."""
MAX_ROLLED_UP = 1 << 24  # groups of pairs times pairs


class Cross(Strict):
    """Two attributes to ask together."""

    of: tuple[str, str]
    share: Share | None = None
    mechanism: MechanismName = "auto"
    parameter: int | None = Field(None, ge=1, le=MAX_VALUES, description=PARAMETERS)

    @property
    def name(self) -> str:
        """What results call it, such as age*area."""
        return TIMES.join(self.of)


class Crossed(Attribute):
    """The attribute that a cross asks: pairs of values, in the order of the first attribute and then of the second."""

    axes: tuple[Attribute, Attribute]


def crossed(cross: Cross, first: Attribute, second: Attribute) -> Crossed:
    """A cross with its pairs and the groups of both attributes. Its parts were checked, so it is not checked again.

    >>> age = Attribute(name="age", values=("young", "old"))
    >>> area = Attribute(name="area", values=("N", "S", "W"), groups={"poles": ("N", "S")})
    >>> both = crossed(Cross(of=("age", "area")), age, area)
    >>> both.name, both.values[:4]
    ('age*area', ('young*N', 'young*S', 'young*W', 'old*N'))
    >>> both.groups["old*poles"]
    ('old*N', 'old*S')
    """
    return Crossed.model_construct(
        name=cross.name,
        values=_named(first.values, second.values),
        groups=_rolled_up(first, second),
        share=cross.share,
        mechanism=cross.mechanism,
        parameter=cross.parameter,
        axes=(first, second),
    )


def check_cross(cross: Cross, attributes: Sequence[Attribute]) -> None:
    """Raise ValueError if it does not name two attributes, or if there are too many pairs."""
    where = f"crosses: {cross.name}"
    known = {attribute.name: attribute for attribute in attributes}
    if cross.of[0] == cross.of[1]:
        raise ValueError(f"{where} crosses {cross.of[0]!r} with itself; name two attributes")
    for name in cross.of:
        if name not in known:
            raise ValueError(f"{where}: there is no attribute {name!r}; there are {', '.join(known)}")
    first, second = (known[name] for name in cross.of)
    for axis in (first, second):
        if axis.placed:
            raise ValueError(
                f"{where}: places of {axis.name!r} are protected by distance, and pairs are not; "
                "cross an attribute whose values are areas"
            )
        if axis.mechanism == "threshold":
            raise ValueError(f"{where}: {axis.name!r} is asked by thresholds, and has no values to pair; leave it out")
        if axis.several is not None:
            raise ValueError(f"{where}: {axis.name!r} has sets, and pairs are of single values; leave one of both out")
    if first.k * second.k > MAX_VALUES:
        raise ValueError(
            f"{where} has {first.k * second.k:,} pairs; at most {MAX_VALUES:,} can be asked: use fewer values, such "
            "as a range with a larger step"
        )
    groups = (first.k + len(first.groups)) * (second.k + len(second.groups)) - first.k * second.k
    if groups * first.k * second.k > MAX_ROLLED_UP:
        raise ValueError(f"{where} has {groups:,} groups of pairs, which take too long to add up; name fewer groups")
    both = crossed(cross, first, second)
    both.check_mechanism(where)
    refuse_twice(both.values, f"{where} has", f"write values without {TIMES}")
    rolled_up = [*_named(first.groups, second.values), *_named(first.values, second.groups)]
    refuse_twice((*rolled_up, *_named(first.groups, second.groups)), f"{where} has the group", "rename a group")


def shares_of(given: Sequence[float | None]) -> tuple[float, ...]:
    """The share of each question: as named, and what is left, evenly, for the others.

    >>> shares_of([None, 0.5, None])
    (0.25, 0.5, 0.25)
    """
    named = [share for share in given if share is not None]
    total, left = fsum(named), len(given) - len(named)
    if left and total > 1 - left * MIN_SHARE:
        raise ValueError(f"share: the named shares sum to {total:.6g}, which leaves nothing for the others; name less")
    if not left and abs(total - 1) > 1e-9:
        raise ValueError(f"share: the shares sum to {total:.12g}; make them sum to 1, or leave some of them out")
    rest = (1 - total) / max(left, 1)
    return tuple(rest if share is None else share for share in given)


def _named(firsts: Iterable[str], seconds: Iterable[str]) -> tuple[str, ...]:
    return tuple(f"{first}{TIMES}{second}" for first, second in product(firsts, seconds))


def _rolled_up(first: Attribute, second: Attribute) -> dict[str, tuple[str, ...]]:
    """A group with each value of the other attribute, each value with a group, and a group with a group."""
    ones, others = ({value: (value,) for value in attribute.values} for attribute in (first, second))
    parts = ((first.groups, others), (ones, second.groups), (first.groups, second.groups))
    return {
        f"{one}{TIMES}{other}": _named(members, more)
        for firsts, seconds in parts
        for (one, members), (other, more) in product(firsts.items(), seconds.items())
    }
