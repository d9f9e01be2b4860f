"""Mechanisms that send a value, once and with a memo: generalised randomised response, and truncated geometric noise.

The second is for ordered values: it protects by distance.
"""

from itertools import pairwise

from protocols.mechanisms.encodings import Direct
from protocols.mechanisms.mechanism import Budget, Mechanism
from protocols.mechanisms.portable import exp, expm1
from protocols.mechanisms.record import EVERY_CHOOSER, Fakes, MechanismRecord
from protocols.mechanisms.rounds import Flip, geometric, grr


def build_grr(k: int, budget: Budget, parameter: int | None = None) -> Mechanism:
    return Mechanism("grr", Direct(k), grr(k, budget.inf))


def build_l_grr(k: int, budget: Budget, parameter: int | None = None) -> Mechanism:
    """GRR of a GRR. Chained GRRs are a GRR, so the exact second round is the one that makes the chain GRR(b).

    As published, it omits the other k - 2 intermediate values and wastes budget (PROTOCOLS 3, trap).
    """
    assert budget.one is not None
    a, b, first = budget.inf, budget.one, grr(k, budget.inf)
    p2 = (grr(k, b).p - first.q) / first.gain
    if budget.calibration == "published":
        kept = -expm1(-a - b)  # numerator and denominator as printed, both divided by e^(a+b)
        p2 = kept / ((k - 1) * (exp(-b) - exp(-a)) + kept)
    return Mechanism("l-grr", Direct(k), first, Flip(p2, (1 - p2) / (k - 1)))


GRR = MechanismRecord(
    "grr",
    "generalised randomised response: the value, or any other one",
    one_round=build_grr,
    fakes=Fakes("grr", "l-grr", "bare"),
    chosen_by=EVERY_CHOOSER,
)
L_GRR = MechanismRecord(
    "l-grr", "grr of a memoised grr", two_rounds=build_l_grr, published_differs=True, chosen_by=EVERY_CHOOSER
)
GRR_R = MechanismRecord(
    "grr-r",
    "grr, fakes are noise on a drawn value",
    fakes=Fakes("grr", "l-grr", "noisy"),
    chosen_by={"auto": ("rs+rfd",)},  # with uniform fakes it is the same as grr
)


MAX_MATRIX = 1024  # values for which the whole matrix is computed and inverted
WIDEST = 64.0  # a second round with this eps keeps the memo, but for 1 of 10^27 reports


def build_geometric(k: int, budget: Budget, parameter: int | None = None) -> Mechanism:
    return Mechanism("geometric", Direct(k), geometric(k, budget.inf))


def build_l_geometric(k: int, budget: Budget, parameter: int | None = None) -> Mechanism:
    """Two truncated geometrics; the second makes neighbouring values differ by exactly b in one report.

    Its eps is found by bisection. That takes the same steps on every machine, as the solvers of a library might not.
    """
    assert budget.one is not None
    wanted, low, high = exp(budget.one), 0.0, WIDEST
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if _largest_ratio(k, budget.inf, middle) <= wanted else (low, middle)
    return Mechanism("l-geometric", Direct(k), geometric(k, budget.inf), geometric(k, low))


def _largest_ratio(k: int, eps1: float, eps2: float) -> float:
    """How much likelier a report at the upper end becomes, at most, if the value goes up by one.

    The likelihood under value i is, up to a constant, the sum over memos j of c_j r^|i-j| s^(k-1-j), where c_j is 1 at
    the ends and 1 - r between them. Memos below i and those from i on are summed by a recursion each.

    >>> from math import log
    >>> from protocols.mechanisms.rounds import end_evidence
    >>> evidence = end_evidence(geometric(9, 0.8), geometric(9, 0.5))
    >>> bool(abs(log(_largest_ratio(9, 0.8, 0.5)) - (evidence[1:] - evidence[:-1]).max()) < 1e-12)
    True
    """
    r, s = exp(-eps1), exp(-eps2)
    scale = max(r, s)  # place i is kept divided by scale^(k-1-i), or it would become too small for a float
    weights = [1.0]
    for _ in range(k - 1):
        weights.append(weights[-1] * (s / scale))
    weights.reverse()
    weights[1:-1] = [-expm1(-eps1) * weight for weight in weights[1:-1]]
    from_here = weights.copy()
    for i in reversed(range(k - 1)):
        from_here[i] += r / scale * from_here[i + 1]
    below, likelihoods = 0.0, []
    for i in range(k):
        likelihoods.append(below + from_here[i])
        below = r * scale * (below + weights[i])
    return max(up / down for down, up in pairwise(likelihoods)) / scale


GEOMETRIC = MechanismRecord(
    "geometric",
    "truncated geometric noise: near numbers are confused, far ones less",
    one_round=build_geometric,
    needs_order=True,
    max_values=MAX_MATRIX,
)
L_GEOMETRIC = MechanismRecord(
    "l-geometric",
    "geometric of a memoised geometric",
    two_rounds=build_l_geometric,
    needs_order=True,
    max_values=MAX_MATRIX,
)
