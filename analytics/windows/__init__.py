"""Windows of periods: which ones there are, the sums of those that are open, and what is released of those that end."""

from analytics.windows.calendar import Window
from analytics.windows.numbers import Table, Tables, WindowNumbers
from analytics.windows.spans import SINCE, Span, spans_of, standard_windows, triangle_windows
from analytics.windows.sums import UnitSums, WindowKey, WindowSum, WindowSums, first_in, flagged, never_before
