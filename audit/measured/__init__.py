"""Attacks carried out on reports of devices whose values the audit knows."""

from audit.measured.coins import CoinAudit, coin_audit, smallest_violation
from audit.measured.epsilon import Experiment, experiments
from audit.measured.histories import Coins
from audit.measured.observed import Observed, Witness
from audit.measured.population import Population
from audit.measured.reidentify import (
    TOPS,
    Choice,
    Found,
    Table,
    chosen_attributes,
    guessed,
    rank,
    seen_by_smp,
    seen_of_tuples,
    without_noise,
)

__all__ = [
    "TOPS",
    "Choice",
    "CoinAudit",
    "Coins",
    "Experiment",
    "Found",
    "Observed",
    "Population",
    "Table",
    "Witness",
    "chosen_attributes",
    "coin_audit",
    "experiments",
    "guessed",
    "rank",
    "seen_by_smp",
    "seen_of_tuples",
    "smallest_violation",
    "without_noise",
]
