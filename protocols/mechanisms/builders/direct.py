"""Generalised randomised response, once (GRR) and with a memo (L-GRR)."""

from protocols.mechanisms.encodings import Direct
from protocols.mechanisms.mechanism import Budget, Mechanism
from protocols.mechanisms.portable import exp, expm1
from protocols.mechanisms.record import EVERY_CHOOSER, Fakes, MechanismRecord
from protocols.mechanisms.rounds import Flip, grr


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
