"""How likely answers are under each value, whether they are fake, and whether two of them are one device's."""

from audit.likelihoods.linked import Linked, linked
from audit.likelihoods.pairs import PairScores, pair_scores

__all__ = ["Linked", "PairScores", "linked", "pair_scores"]
