"""Windows of periods: which ones there are, their first reports, and the noise on their counts."""

from analytics.windows.agreement import Agreed, agree
from analytics.windows.calendar import Window
from analytics.windows.first_reports import ByGap
from analytics.windows.units import UnitSum, UnitSums, agree_flags, extended, flagged
