"""Attacks in closed form: what the best attacker gains, computed from a survey's channels."""

from lab.audit.closed.forging import Forgery, forgery_gain, moved
from lab.audit.closed.guessing import KEPT, best_guess, bit_counts, guess, prior_guess, tuple_guess
from lab.audit.closed.linking import change_shows, memo_bits
from lab.audit.closed.places import averaged, blind
from lab.audit.closed.which import attribute_inference

__all__ = [
    "KEPT",
    "Forgery",
    "attribute_inference",
    "averaged",
    "best_guess",
    "bit_counts",
    "blind",
    "change_shows",
    "forgery_gain",
    "guess",
    "memo_bits",
    "moved",
    "prior_guess",
    "tuple_guess",
]
