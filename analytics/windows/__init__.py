"""Windows of periods: which ones there are, sums of calendar units, and counts with noise made to agree."""

from analytics.windows.agreement import Agreed, agree
from analytics.windows.calendar import Window
from analytics.windows.units import UnitSum, UnitSums, agree_flags, flagged
