"""Attacks carried out on reports of devices whose values the audit knows."""

from audit.measured.coins import CoinAudit, coin_audit, smallest_violation
from audit.measured.epsilon import Experiment, experiments
from audit.measured.histories import Coins
from audit.measured.observed import Observed, Witness
from audit.measured.population import Population

__all__ = [
    "CoinAudit",
    "Coins",
    "Experiment",
    "Observed",
    "Population",
    "Witness",
    "coin_audit",
    "experiments",
    "smallest_violation",
]
