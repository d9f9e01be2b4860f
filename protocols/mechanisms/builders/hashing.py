"""Mechanisms that send less than the value: its hash (OLH, LOLOHA), some of its bits (dBitFlipPM), or one bit about it.

The one bit is whether a number is above a threshold, for means and quantiles of numbers that keep changing.

OLH has a new hash in every report, for one-shot surveys of very many values. The lifelong cost of the others does not
grow with the domain (PROTOCOLS 5).
"""

from hearsay_device.attributes import MOST_VALUES
from hearsay_device.questions import FRESH_PRIMES, MOST_HASHES
from protocols.errors import InfeasibleError
from protocols.mechanisms.builders.direct import build_grr, build_l_grr
from protocols.mechanisms.encodings import bit_flip
from protocols.mechanisms.fresh import FreshHash
from protocols.mechanisms.lifelong import Buckets, Hashed, Threshold, slots_of
from protocols.mechanisms.mechanism import Budget, Mechanism
from protocols.mechanisms.record import MAX_VALUES, MechanismRecord
from protocols.mechanisms.rounds import grr, sue


def build_olh(k: int, budget: Budget, parameter: int | None = None) -> Mechanism:
    """Hash to g values, then GRR among them; g by default the prime with the smallest variance.

    Of each of the `MOST_HASHES` 16 bytes are in memory while supports are counted, unless a counter takes less.
    """
    feasible = [g for g in FRESH_PRIMES if FreshHash(k, g).family <= MOST_HASHES]
    chosen = _chosen("olh", k, parameter, feasible)
    return min((Mechanism("olh", FreshHash(k, g), grr(g, budget.inf)) for g in chosen), key=_variance)


def _chosen(name: str, k: int, parameter: int | None, feasible: list[int]) -> list[int]:
    """The numbers of symbols to choose from: the survey's, or by default every one that is feasible."""
    if parameter is None:
        return feasible
    if parameter not in feasible:
        choices = ", ".join(map(str, feasible)) or "none"
        raise InfeasibleError(f"{name} cannot hash {k} values to g = {parameter}", f"possible here: {choices}")
    return [parameter]


def _variance(mechanism: Mechanism) -> float:
    """n times the variance of the estimate of a value that nobody has; the same for every value (PROTOCOLS 1)."""
    seen = mechanism.encoding.seen(bit_flip(mechanism.one_report))
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


def build_loloha(k: int, budget: Budget, parameter: int | None = None) -> Mechanism:
    """Hash to g values, then (L-)GRR among them; g by default the one with the smallest variance."""
    feasible = [g for g in FRESH_PRIMES if k <= _largest_domain(g)]  # up to 13: then families are too small
    if parameter is None and not feasible:
        raise InfeasibleError(f"loloha hashes at most {_largest_domain(2)} values, not {k}", "use l-osue")
    return min((_loloha(k, budget, g) for g in _chosen("loloha", k, parameter, feasible)), key=_variance)


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


def build_threshold(k: int, budget: Budget, parameter: int | None = None) -> Mechanism:
    """(L-)GRR of two values, for k numbers."""
    slots = slots_of(k, parameter)
    inner = (build_grr if budget.one is None else build_l_grr)(2, budget)
    return Mechanism("threshold", Threshold(2 * slots, k, slots), inner.first, inner.second)


THRESHOLD = MechanismRecord(
    "threshold",
    "one bit: whether a number is above a threshold that the device keeps for life; means and quantiles, at most two "
    "memos",
    one_round=build_threshold,
    two_rounds=build_threshold,
    lifelong=True,
    without_memos=True,
    needs_order=True,
    parameter="slots of which a device answers about one; 1: the mean only",
)
