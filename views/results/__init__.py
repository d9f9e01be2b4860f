"""Results of a period or of a survey: histogram, mobility report with its verdict, nowcasts, and live status."""

from views.results.histogram import HISTOGRAMS, Histogram, histogram_table
from views.results.mobility import MOBILITY, MobilityResult
from views.results.nowcasts import NOWCASTS, NowcastResult
from views.results.status import LIVE, Live
