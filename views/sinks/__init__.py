"""Where results go: topics, and tables of files and databases."""

from views.sinks.catalogue import SINKS, open_sink
from views.sinks.sink import ListedSink, Made, Sink
from views.sinks.tables import TableSink

__all__ = ["SINKS", "ListedSink", "Made", "Sink", "TableSink", "open_sink"]
