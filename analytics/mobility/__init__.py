"""Mobility reports: visitors, their answers, rankings, dwell times and flows."""

from analytics.mobility.answers import Answers
from analytics.mobility.attributes import axes_of, sizes_of
from analytics.mobility.combining import (
    WindowTruth,
    combine,
    with_changes,
    with_lost_presence,
    with_nowcasts,
    with_shortfall,
    with_truth,
)
from analytics.mobility.count_history import ByGap, CountHistory
from analytics.mobility.model import (
    AskedAttribute,
    AttributeReport,
    Axis,
    MobilityReport,
    Quantities,
    Quantity,
    Shares,
    Sizes,
    WindowReport,
    quantity,
)
from analytics.mobility.released_windows import ReleasedWindows
from analytics.mobility.report import mobility_report, released_report
from analytics.mobility.report_tables import PART_ROWS, explained, tables, tables_in_parts
