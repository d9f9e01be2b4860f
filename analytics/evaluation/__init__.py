"""The errors of methods where the truth is known: MSE_avg as the papers measure it."""

from analytics.evaluation.measuring import CORRECTIONS, USUAL, evaluate
from analytics.evaluation.methods import Method, choose
from analytics.evaluation.places import Place
from analytics.evaluation.scores import Mean, Outcome, PlaceErrors, Score
from analytics.evaluation.truth import Moment, Snapshot, Truth, crossing, everybody_once, noisy_priors

__all__ = [
    "CORRECTIONS",
    "USUAL",
    "Mean",
    "Method",
    "Moment",
    "Outcome",
    "Place",
    "PlaceErrors",
    "Score",
    "Snapshot",
    "Truth",
    "choose",
    "crossing",
    "evaluate",
    "everybody_once",
    "noisy_priors",
]
