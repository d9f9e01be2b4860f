"""Windows of periods: which ones there are, their first reports, and the noise on their counts."""

from analytics.windows.calendar import Window
from analytics.windows.first_reports import ByGap
from analytics.windows.presence_noise import noise_error, scale

__all__ = ["ByGap", "Window", "noise_error", "scale"]
