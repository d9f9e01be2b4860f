"""Attacks in closed form: what the best attacker gains, computed from a survey's channels."""

from audit.closed.forging import Forgery, forged_supports, forgery_gain, moved
from audit.closed.guessing import best_guess, guess, guess_in_periods, prior_guess, tuple_guess
from audit.closed.linking import change_shows, memo_bits, trackability
from audit.closed.which import attribute_inference

__all__ = [
    "Forgery",
    "attribute_inference",
    "best_guess",
    "change_shows",
    "forged_supports",
    "forgery_gain",
    "guess",
    "guess_in_periods",
    "memo_bits",
    "moved",
    "prior_guess",
    "trackability",
    "tuple_guess",
]
