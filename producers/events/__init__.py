"""Events of people: from rows to one value per person and period, and to reports. For replays and edges."""

from producers.events.choosing import Rule
from producers.events.inspecting import Inspection, inspect, refuse_faulty
from producers.events.interpreting import ANY_ORDER, Options
from producers.events.quality import Fault, Located
