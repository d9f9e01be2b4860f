"""All mechanisms: the one list that names, checks, choices, the reference and the tests derive from."""

from functools import lru_cache

from protocols.mechanisms.builders import direct, hashing, places, unary
from protocols.mechanisms.mechanism import Budget, Mechanism
from protocols.mechanisms.places.area import Area
from protocols.mechanisms.record import CHOOSERS, MechanismRecord, Use

RECORDS: dict[str, MechanismRecord] = {
    record.name: record
    for record in (
        direct.GRR,
        unary.SUE,
        unary.OUE,
        hashing.OLH,
        direct.GEOMETRIC,
        direct.L_GRR,
        unary.L_OSUE,
        unary.L_SUE,
        unary.L_OUE,
        unary.L_SOUE,
        direct.L_GEOMETRIC,
        places.GEO_GRID,
        places.GEO_TIGHT,
        hashing.LOLOHA,
        hashing.DBITFLIP,
        hashing.THRESHOLD,
        direct.GRR_R,
        unary.SUE_Z,
        unary.SUE_R,
        unary.OUE_Z,
        unary.OUE_R,
    )
}
"""By name, in the order in which people see them."""

NAMES: tuple[str, ...] = (*CHOOSERS, *RECORDS)
"""What a survey may write as a mechanism."""


def fitting(use: Use, placed: bool = False) -> list[MechanismRecord]:
    """Every mechanism that can be used this way; `placed`: those for places that are protected by distance.

    >>> [record.name for record in fitting("rs+rfd")]
    ['grr', 'grr-r', 'sue-r', 'oue-r']
    """
    return [record for record in RECORDS.values() if record.fits(use) and record.needs_grid == placed]


@lru_cache(maxsize=1024)
def build(name: str, domain: int | Area, budget: Budget, parameter: int | None = None) -> Mechanism:
    """A mechanism by name for so many values, or for an area, with as many rounds as the budget has parts.

    Cached, because calibrating a long ordered range takes a while and surveys compare their options.
    """
    record = RECORDS[name]
    builder = record.one_round if budget.one is None else record.two_rounds
    assert builder is not None, f"{name} has no {'single round' if budget.one is None else 'second round'}"
    return builder(domain, budget, parameter)
