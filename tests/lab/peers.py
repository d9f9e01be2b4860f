"""Mechanisms of other libraries, as functions from a value to the bytes of a report: for `hearsay audit --function`."""

from functools import cache
from typing import Any

import numpy as np

VALUES, EPSILON = 8, 1.0


@cache
def _bit_vector() -> Any:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.bitvector_domain(max_weight=1), dp.discrete_distance()
    return dp.m.make_randomized_response_bitvec(*space, f=2 / (1 + np.exp(EPSILON / 2)))


def opendp_promise() -> float:
    """What opendp says that a report loses."""
    return float(_bit_vector().map(1))


def opendp_bits(value: int) -> bytes:
    """A vector of eight bits in which one is set."""
    return bytes(_bit_vector()(bytes([1 << value])))


@cache
def _unary() -> Any:
    from pure_ldp.frequency_oracles.unary_encoding import UEClient

    return UEClient(EPSILON, VALUES, index_mapper=int)


def pure_ldp_unary(value: int) -> bytes:
    """A vector of eight bits, a byte each."""
    return bytes(_unary().privatise(value).astype(np.uint8))
