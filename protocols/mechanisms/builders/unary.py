"""Unary encodings, once (SUE, OUE) and with a memo (L-SUE, L-OSUE, L-OUE, L-SOUE)."""

from collections.abc import Callable
from math import log, sqrt

from protocols.errors import InfeasibleError
from protocols.mechanisms.encodings import Unary
from protocols.mechanisms.mechanism import Budget, Mechanism
from protocols.mechanisms.portable import exp, expm1
from protocols.mechanisms.record import EVERY_CHOOSER, Fakes, MechanismRecord
from protocols.mechanisms.rounds import Flip, oue, sue


def build_sue(k: int, budget: Budget, parameter: int | None = None) -> Mechanism:
    return Mechanism("sue", Unary(k), sue(budget.inf))


def build_oue(k: int, budget: Budget, parameter: int | None = None) -> Mechanism:
    return Mechanism("oue", Unary(k), oue(budget.inf))


def build_l_sue(k: int, budget: Budget, parameter: int | None = None) -> Mechanism:
    """Basic RAPPOR, calibrated so that one report is SUE(b)."""
    assert budget.one is not None
    first = sue(budget.inf)
    p2 = (sue(budget.one).p - first.q) / first.gain
    return Mechanism("l-sue", Unary(k), first, Flip(p2, 1 - p2))


def build_l_osue(k: int, budget: Budget, parameter: int | None = None) -> Mechanism:
    """OUE memos under a symmetric flip; one report is OUE(b)."""
    assert budget.one is not None
    a, b = budget.inf, budget.one
    kept = -expm1(-a - b)  # PROTOCOLS 3, numerator and denominator divided by e^(a+b)
    p2 = kept / (kept + exp(-b) - exp(-a))
    return Mechanism("l-osue", Unary(k), oue(a), Flip(p2, 1 - p2))


def build_l_oue(k: int, budget: Budget, parameter: int | None = None) -> Mechanism:
    """OUE in both rounds; feasible below b = ln((2 e^a + 1) / 3)."""
    return _half("l-oue", oue, k, budget, limit=budget.inf + log((2 + exp(-budget.inf)) / 3))


def build_l_soue(k: int, budget: Budget, parameter: int | None = None) -> Mechanism:
    """SUE memos under an OUE second round; feasible below b = ln(e^h (2 e^h + 1) / (e^h + 2)), h = a / 2."""
    h = budget.inf / 2
    return _half("l-soue", sue, k, budget, limit=h + log((2 + exp(-h)) / (1 + 2 * exp(-h))))


def _half(name: str, first_round: Callable[[float], Flip], k: int, budget: Budget, limit: float) -> Mechanism:
    """A second round with p2 = 1/2 and the q2 for which one report reveals exactly b."""
    assert budget.one is not None
    if budget.one >= limit:
        raise InfeasibleError(
            f"{name} cannot reach eps_1 = {budget.one:g} with eps_inf = {budget.inf:g}",
            f"choose eps_1 below {limit:.6g}, or another mechanism",
        )
    first = first_round(budget.inf)
    return Mechanism(name, Unary(k), first, Flip(0.5, _second_q(first, budget.one)))


def _second_q(first: Flip, b: float) -> float:
    """The q of a second round with p = 1/2 after which p (1-q) = e^b q (1-p) holds for both rounds together.

    Chained, p is (p1 + (2 - 2 p1) q) / 2 and q likewise, so this is a quadratic equation, with one root in (0, 1/2).
    """
    odds = exp(b)
    p, p_slope, q, q_slope = first.p / 2, 1 - first.p, first.q / 2, 1 - first.q
    square = p_slope * q_slope * expm1(b)
    linear = p_slope * (1 - q) - p * q_slope - odds * (q_slope * (1 - p) - q * p_slope)
    constant = p * (1 - q) - odds * q * (1 - p)
    return 2 * constant / (sqrt(linear * linear - 4 * square * constant) - linear)


SUE = MechanismRecord("sue", "symmetric unary encoding: one bit for each value, all flipped alike", one_round=build_sue)
OUE = MechanismRecord(
    "oue",
    "optimised unary encoding: ones are coin tosses, zeros nearly kept",
    one_round=build_oue,
    chosen_by=EVERY_CHOOSER,
)
L_OSUE = MechanismRecord("l-osue", "sue of a memoised oue", two_rounds=build_l_osue, chosen_by=EVERY_CHOOSER)
L_SUE = MechanismRecord("l-sue", "sue of a memoised sue (basic RAPPOR)", two_rounds=build_l_sue)
L_OUE = MechanismRecord("l-oue", "oue of a memoised oue; not for every eps_1", two_rounds=build_l_oue)
L_SOUE = MechanismRecord("l-soue", "oue of a memoised sue; not for every eps_1", two_rounds=build_l_soue)

# A fake without any bit of its own gives the sampled attribute away (PROTOCOLS 4): only adp, as published, takes it.
SUE_Z = MechanismRecord(
    "sue-z",
    "sue, fakes are noise on nothing; gives away which attribute is true",
    fakes=Fakes("sue", "l-sue", "zero"),
)
SUE_R = MechanismRecord("sue-r", "sue, fakes are noise on a drawn value", fakes=Fakes("sue", "l-sue", "noisy"))
OUE_Z = MechanismRecord(
    "oue-z",
    "oue, fakes are noise on nothing; gives away which attribute is true",
    fakes=Fakes("oue", "l-osue", "zero"),
    chosen_by={"adp": ("rs+fd",)},
)
OUE_R = MechanismRecord(
    "oue-r",
    "oue, fakes are noise on a drawn value",
    fakes=Fakes("oue", "l-osue", "noisy"),
    chosen_by={**EVERY_CHOOSER, "adp": ("rs+rfd",)},
)
