"""The survey model: attributes, values, budgets, periods, and the declared terms."""

from protocols.survey.attribute import MIN_SHARE, Attribute
from protocols.survey.calendar import DAY, EPOCH, HOUR, MAX_PERIOD, MICROSECOND, Calendar, TimeZone, Unit, micros
from protocols.survey.crosses import TIMES, Cross
from protocols.survey.grid import Grid
from protocols.survey.html import html_table
from protocols.survey.model import Solution, Survey
from protocols.survey.names import Duration, Strict, Told, format_duration, parse_duration
from protocols.survey.released import RELEASED_OF, Released, ReleasedOf, RollingWindow, units_of_release
from protocols.survey.roles import dwell_times, origin_and_destination
from protocols.survey.sets import NOTHING, Thresholds, count_values, table_of_sets, with_paddings
from protocols.survey.versions import Rolling, undecided, version_of_new_texts
from protocols.survey.visits import BITS, MONDAY, NEVER, UNITS, CalendarVisits, Visits
