"""The truncated geometric mechanism for ordered values, once and with a memo: it protects by distance."""

from itertools import pairwise

from protocols.mechanisms.encodings import Direct
from protocols.mechanisms.mechanism import Budget, Mechanism
from protocols.mechanisms.portable import exp, expm1
from protocols.mechanisms.record import MechanismRecord
from protocols.mechanisms.rounds import geometric

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
