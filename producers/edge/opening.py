"""The edge that a declaration asks for: over a directory, or one of the processes over a topic."""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from memo_store.survey_memos import SurveyMemos
from producers.edge.declaration import EdgeDeclaration
from producers.edge.directory import DirectoryEdge
from producers.files.json_events import json_object
from producers.sinks.base import Sink
from servers.settings import KafkaSettings

if TYPE_CHECKING:
    from producers.edge.topic import TopicEdge


def open_edge(
    declared: EdgeDeclaration,
    beside: Path,
    memos: SurveyMemos,
    sink: Sink,
    workspace: Path,
    *,
    kafka: KafkaSettings,
    clock_key: bytes | None,
    now: Callable[[], datetime],
) -> "DirectoryEdge | TopicEdge":
    """Paths of the declaration are relative to `beside`. `kafka` is the cluster of events over a topic."""
    source, options = declared.events, declared.options(memos.respondent.scheme.survey)
    if source.directory is not None:
        directory = beside / source.directory
        return DirectoryEdge(memos, sink, options, directory, workspace, clock_key=clock_key, now=now)
    from producers.edge.records import csv_line
    from producers.edge.topic import EventsTopic, TopicEdge  # its client takes time that files do not need

    assert source.topic is not None and declared.idle is not None  # by the declaration
    read = csv_line(source.fields, declared.delimiter) if source.format == "csv" else json_object
    events = EventsTopic(kafka, source.topic, read, declared.encoding, declared.idle)
    return TopicEdge(memos, sink, options, events, workspace, clock_key=clock_key, now=now)
