"""One bit about a number: whether it is above a threshold. For means and quantiles of numbers that keep changing."""

from protocols.mechanisms.builders.direct import build_grr, build_l_grr
from protocols.mechanisms.mechanism import Budget, Mechanism
from protocols.mechanisms.record import MechanismRecord
from protocols.mechanisms.thresholds import Threshold, slots_of


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
