"""What is published, and how it is made from counts: pure."""

from stream_app.results.histograms import Histogram, Live, build_histogram
from stream_app.results.mobility import ClosedPeriod, publish_mobility
from stream_app.results.presence_noise import published_cells

__all__ = ["ClosedPeriod", "Histogram", "Live", "build_histogram", "publish_mobility", "published_cells"]
