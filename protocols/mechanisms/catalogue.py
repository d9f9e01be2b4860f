"""The zoo, as a list: a new mechanism is one short builder and one line here."""

from __future__ import annotations

from functools import lru_cache

from protocols.mechanisms.direct import build_grr, build_l_grr
from protocols.mechanisms.evolving import build_dbitflip, build_loloha
from protocols.mechanisms.mechanism import Budget, Builder, Calibration, Mechanism
from protocols.mechanisms.ordered import build_geometric, build_l_geometric
from protocols.mechanisms.unary import build_l_osue, build_l_oue, build_l_soue, build_l_sue, build_oue, build_sue

ONE_ROUND: dict[str, Builder] = {
    "grr": build_grr,
    "sue": build_sue,
    "oue": build_oue,
    "geometric": build_geometric,
    "loloha": build_loloha,
    "dbitflip": build_dbitflip,
}
TWO_ROUNDS: dict[str, Builder] = {
    "l-grr": build_l_grr,
    "l-sue": build_l_sue,
    "l-osue": build_l_osue,
    "l-oue": build_l_oue,
    "l-soue": build_l_soue,
    "l-geometric": build_l_geometric,
    "loloha": build_loloha,
}


@lru_cache(maxsize=1024)
def build(name: str, k: int, budget: Budget, parameter: int | None = None) -> Mechanism:
    """A mechanism by name. Kept: calibrating a long ordered range takes a while, and surveys compare their options."""
    return (ONE_ROUND if budget.one is None else TWO_ROUNDS)[name](k, budget, parameter)


__all__ = ["ONE_ROUND", "TWO_ROUNDS", "Budget", "Builder", "Calibration", "Mechanism", "build"]
