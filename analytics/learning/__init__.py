"""Learning from tables with known noise: synthetic records, and a classifier. Estimates go in, nothing raw."""

from analytics.learning.association import Association
from analytics.learning.comparing import Learnt, People, compare, split
from analytics.learning.naive_bayes import NaiveBayes, naive_bayes
from analytics.learning.records import Distance, distances, draw_records
from analytics.learning.tables import Measured, Pair, Records, Shares, counted
from analytics.learning.tree import Model, fit

__all__ = [
    "Association",
    "Distance",
    "Learnt",
    "Measured",
    "Model",
    "NaiveBayes",
    "Pair",
    "People",
    "Records",
    "Shares",
    "compare",
    "counted",
    "distances",
    "draw_records",
    "fit",
    "naive_bayes",
    "split",
]
