"""Where results go: topics, and tables of files and databases."""

from views.sinks.sink import SINKS, Made, Sink, open_sink
