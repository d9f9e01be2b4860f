"""Files that people have: events in batches, whole tables, and what their cells mean."""

from producers.files.answers import cells, places
from producers.files.batch import Batch, ColumnMapping
from producers.files.reading import EventFiles, FileFormat, event_files, event_paths, expand
from producers.files.tables import TableSource, in_memory, read_table, table_name
from producers.files.times import BAD, Repeated, formatted
