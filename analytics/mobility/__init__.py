"""Mobility reports: who came, how often, from where to where, for how long."""

from analytics.mobility.changes import with_changes
from analytics.mobility.combining import combine, with_lates, with_lost_presence, with_truth
from analytics.mobility.history import History
from analytics.mobility.model import AttributeReport, Change, MobilityReport, Quantity, WindowReport
from analytics.mobility.output.page.rendering import render_page
from analytics.mobility.output.tables import tables
from analytics.mobility.publication import Truth
from analytics.mobility.report import mobility_report

__all__ = [
    "AttributeReport",
    "Change",
    "History",
    "MobilityReport",
    "Quantity",
    "Truth",
    "WindowReport",
    "combine",
    "mobility_report",
    "render_page",
    "tables",
    "with_changes",
    "with_lates",
    "with_lost_presence",
    "with_truth",
]
