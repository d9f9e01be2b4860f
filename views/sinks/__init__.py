"""Where results go: topics, and tables of files and databases."""

from views.sinks.catalogue import SINKS, open_sink
from views.sinks.sink import Made, Sink

__all__ = ["SINKS", "Made", "Sink", "open_sink"]
