"""Event files: rows in batches, from one or many files, and what their cells mean."""

from producers.replay.files.batch import Batch, ColumnMapping
from producers.replay.files.reading import EventFiles, FileFormat, expand

__all__ = ["Batch", "ColumnMapping", "EventFiles", "FileFormat", "expand"]
