"""Mobility reports: who came, how often, from where to where, for how long."""

from analytics.mobility.history import History
from analytics.mobility.model import MobilityReport
from analytics.mobility.publication import Truth
from analytics.mobility.report import mobility_report

__all__ = ["History", "MobilityReport", "Truth", "mobility_report"]
