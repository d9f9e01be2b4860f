"""Learning from tables with known noise: synthetic records, and a classifier. Estimates go in, nothing raw."""

from analytics.learning.association import Association
from analytics.learning.naive_bayes import NaiveBayes, naive_bayes
from analytics.learning.records import Distance, distances, draw_records
from analytics.learning.tables import Measured, Pair, Shares, counted
from analytics.learning.tree import Model, fit

__all__ = [
    "Association",
    "Distance",
    "Measured",
    "Model",
    "NaiveBayes",
    "Pair",
    "Shares",
    "counted",
    "distances",
    "draw_records",
    "fit",
    "naive_bayes",
]
