"""Functions that give the same bits on every machine.

The tables that devices draw with are covered by a survey's fingerprint, so two machines must compute the same ones. The
four basic operations and the square root round the same everywhere (IEEE 754); `math.exp` and numpy's exponentials
differ between C libraries and processors in the last bit. These do not: they round a result of 40 digits.
"""

from decimal import Context, Decimal
from functools import lru_cache

_DIGITS = Context(prec=40)


@lru_cache(maxsize=4096)
def exp(x: float) -> float:
    """e^x.

    >>> exp(0.0), exp(1.0), exp(-800.0)
    (1.0, 2.718281828459045, 0.0)
    """
    return float(Decimal(x).exp(_DIGITS))


@lru_cache(maxsize=4096)
def expm1(x: float) -> float:
    """e^x - 1, also where x is small.

    >>> expm1(1e-20)
    1e-20
    """
    return float(_DIGITS.subtract(Decimal(x).exp(_DIGITS), 1)) if abs(x) > 1e-9 else x + x * x / 2


def round_down(x: float) -> float:
    """The largest multiple of 2^-32 that is not above x.

    For results of long computations with logarithms: their last bits differ between machines, the rounded ones do not,
    unless x is within an error of a multiple (about one in a million). A budget that is rounded down is kept.

    >>> round_down(0.3), round_down(1.5)
    (0.2999999998137355, 1.5)
    """
    return (x * 2**32 // 1) / 2**32
