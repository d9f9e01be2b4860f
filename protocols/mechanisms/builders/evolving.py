"""Mechanisms whose lifelong cost does not grow with the domain (PROTOCOLS 5): LOLOHA and dBitFlipPM."""

from __future__ import annotations

from protocols.errors import InfeasibleError
from protocols.mechanisms.builders.direct import build_grr, build_l_grr
from protocols.mechanisms.channels import variance_at_zero
from protocols.mechanisms.lifelong import Buckets, Hashed
from protocols.mechanisms.mechanism import Budget, Mechanism
from protocols.mechanisms.record import MechanismRecord
from protocols.mechanisms.rounds import sue

PRIMES = (2, 3, 5, 7, 11, 13)


def build_loloha(k: int, budget: Budget, parameter: int | None = None) -> Mechanism:
    """Hash to g values, then (L-)GRR among them; g by default the one with the smallest variance."""
    feasible = [g for g in PRIMES if k <= _largest_domain(g)]
    if parameter is None:
        if not feasible:
            raise InfeasibleError(f"loloha hashes at most {_largest_domain(2)} values, not {k}", "use l-osue")
        return min((_loloha(k, budget, g) for g in feasible), key=lambda m: variance_at_zero(m.channel()))
    if parameter not in feasible:
        choices = ", ".join(map(str, feasible)) or "none"
        raise InfeasibleError(f"loloha cannot hash {k} values to g = {parameter}", f"possible here: {choices}")
    return _loloha(k, budget, parameter)


def build_dbitflip(k: int, budget: Budget, parameter: int | None = None) -> Mechanism:
    """SUE bits of d of the k values, memoised and sent as they are; d = 1 by default.

    With d = 1 two values differ in at most one bit, so it may spend the whole budget, not half of it; as published it
    spends half.
    """
    d = 1 if parameter is None else parameter
    if not 1 <= d <= k:
        raise InfeasibleError(f"dbitflip cannot hold {d} of {k} values", f"choose 1 to {k}")
    lone = d == 1 and budget.calibration == "exact"
    return Mechanism("dbitflip", Buckets(k, d), sue(2 * budget.inf if lone else budget.inf))


def _loloha(k: int, budget: Budget, g: int) -> Mechanism:
    inner = (build_grr if budget.one is None else build_l_grr)(g, budget)
    return Mechanism("loloha", Hashed(k, g), inner.first, inner.second)


def _largest_domain(g: int) -> int:
    """Projective points over the field of g elements, in the family's dimension."""
    return (Hashed(2, g).family - 1) // (g - 1)


LOLOHA = MechanismRecord(
    "loloha",
    "values hashed to a few by a lifelong public hash: values that keep changing cost little; at most 255 values",
    one_round=build_loloha,
    two_rounds=build_loloha,
    lifelong=True,
    max_values=_largest_domain(2),
    parameter="to how many values answers are hashed",
    published_differs=True,
)
DBITFLIP = MechanismRecord(
    "dbitflip",
    "bits for a few values held for life: many values cost little",
    one_round=build_dbitflip,
    lifelong=True,
    parameter="bits held",
    published_differs=True,
)
