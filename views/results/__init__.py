"""Results of a period or of a survey: histogram, mobility report with its verdict, nowcasts, and live status.

And what their readers learn about one device.
"""

from views.results.histogram import HISTOGRAMS, Histogram, histogram_table
from views.results.mobility import MOBILITY, MobilityResult
from views.results.nowcasts import NOWCASTS, NowcastResult
from views.results.readers import crowds_of, readers_figure
from views.results.status import LIVE, Live
