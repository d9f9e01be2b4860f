"""Optimised local hashing with a new hash in every report (OLH): one-shot surveys of very many values."""

from __future__ import annotations

from protocols.errors import InfeasibleError
from protocols.mechanisms.encodings import bit_flip
from protocols.mechanisms.fresh import FreshHash
from protocols.mechanisms.mechanism import Budget, Mechanism
from protocols.mechanisms.record import MAX_VALUES, MechanismRecord
from protocols.mechanisms.rounds import grr

PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61)
MOST_HASHES = 1 << 23
"""16 bytes each are in memory while supports are counted, unless a counter for each hash and symbol takes less."""
MOST_VALUES = 1_000_000


def build_olh(k: int, budget: Budget, parameter: int | None = None) -> Mechanism:
    """Hash to g values, then GRR among them; g by default the prime with the smallest variance."""
    feasible = [g for g in PRIMES if FreshHash(k, g).family <= MOST_HASHES]
    if parameter is None:
        return min((_olh(k, budget, g) for g in feasible), key=_variance)
    if parameter not in feasible:
        raise InfeasibleError(
            f"olh cannot hash {k} values to g = {parameter}", f"possible here: {', '.join(map(str, feasible))}"
        )
    return _olh(k, budget, parameter)


def _olh(k: int, budget: Budget, g: int) -> Mechanism:
    return Mechanism("olh", FreshHash(k, g), grr(g, budget.inf))


def _variance(mechanism: Mechanism) -> float:
    """n times the variance of the estimate of a value that nobody has; the same for every value (PROTOCOLS 1)."""
    seen = mechanism.encoding.seen(bit_flip(mechanism.first))
    return seen.q * (1 - seen.q) / seen.gain**2


OLH = MechanismRecord(
    "olh",
    "values hashed to a few by a hash that is new in every report: up to 1,000,000 values in a few bytes",
    one_round=build_olh,
    fresh=True,
    max_values=MOST_VALUES,
    parameter="to how many values answers are hashed, a prime",
    chosen_by={"auto": ("one-shot",)},
    chosen_above=MAX_VALUES,
)
