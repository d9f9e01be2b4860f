"""edge.yaml: which events an edge reads, what they mean, and how long it waits for them; and the edge it asks for."""

from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self
from zoneinfo import ZoneInfo

from pydantic import BaseModel, Field, ValidationError, model_validator

from memo_store.survey_memos import SurveyMemos
from producers.edge.directory import DirectoryEdge
from producers.edge.partition import csv_line
from producers.events.choosing import Chooser, Rule
from producers.events.interpreting import Options
from producers.files import ColumnMapping, FileFormat, Repeated
from producers.files.json_events import json_object
from producers.sinks import Sink
from protocols.errors import SettingsError
from protocols.survey import Duration, Survey
from protocols.survey_text import NotPlain, explain, read_yaml
from servers.settings import KafkaSettings

if TYPE_CHECKING:
    from producers.edge.topic import TopicEdge

OWN = ("person", "time", "offset")
"""The keys of `columns` that are no attributes."""


class Source(BaseModel, frozen=True, extra="forbid"):
    """Where events come from."""

    directory: str | None = Field(
        None, description="the directory into which files of events are moved when they are complete"
    )
    topic: str | None = Field(None, description="the topic whose records are events, keyed by person")
    kafka: str | None = Field(None, description="HOST:PORT of the topic's cluster; HEARSAY_KAFKA_* if left out")
    format: Literal["json", "csv"] = Field("json", description="of the topic's records: objects, or lines")
    fields: tuple[str, ...] = Field((), description="the columns of lines, in order")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.directory is None) == (self.topic is None):
            raise ValueError("write a directory or a topic")
        if self.directory is not None and (self.kafka or self.fields):
            raise ValueError("kafka, format and fields are for a topic")
        if (self.format == "csv") != bool(self.fields):
            raise ValueError("fields names the columns of lines: write it with format: csv, and only there")
        return self


class EdgeDeclaration(BaseModel, frozen=True, extra="forbid"):
    """What is written in edge.yaml. Paths are relative to it."""

    survey: str = Field(description="the survey's file, with clock: source")
    events: Source = Field(description="where events come from")
    columns: dict[str, str | tuple[str, str]] = Field(
        description="the columns of person and time, of the offset from UTC if there is one, and of attributes with "
        "other names; two columns for positions"
    )
    choose: dict[str, Rule] = Field(
        default_factory=dict, description="by attribute: first, last, most, longest or transition; last if left out"
    )
    lateness: Duration = Field(description="how long after a period's end its events are waited for")
    idle: Duration | None = Field(
        None, description="how long after its last event nobody waits for a partition of a topic"
    )
    zone: ZoneInfo | None = Field(
        None, description="the zone of times without one, such as Europe/Paris; that of the survey if left out"
    )
    repeated: Repeated = Field(
        Repeated.REFUSE, description="local times that the clock shows twice: order, first, second or refuse"
    )
    time_formats: tuple[str, ...] = Field((), description='formats of times, such as "%d/%m/%Y %H:%M"')
    metres: bool = Field(False, description="whether positions are metres of the grid")
    delimiter: str = Field(",", description="between the columns of CSV files")
    encoding: str = Field("utf-8", description="of CSV files")
    forget_after: Duration | None = Field(
        None, description="erase the keys of a period so long after its end, from the survey's first report on"
    )
    drawer: str | None = Field(
        None, description="with forget_after: the directory of period keys, one for all processes of this machine"
    )
    data: str = Field(description="the directory of keys, open periods and results; private")

    @model_validator(mode="after")
    def _check(self) -> Self:
        for name in OWN[:2]:
            if name not in self.columns:
                raise ValueError(f"columns: {name} is missing; name the column that has it")
        for name in OWN:
            if not isinstance(self.columns.get(name, ""), str):
                raise ValueError(f"columns: {name} is one column")
        if self.drawer is not None and self.forget_after is None:
            raise ValueError("drawer: only periods that are forgotten have keys of their own; write forget_after, too")
        if (self.events.topic is None) != (self.idle is None):
            raise ValueError("idle is needed with a topic, and only there: a partition without events holds all up")
        if self.events.topic is not None:
            if self.repeated is Repeated.ORDER:
                raise ValueError("repeated: a topic has no order of rows; name a column of offsets, or choose another")
            if not all(isinstance(column, str) for column in self.columns.values()):
                raise ValueError("columns: positions are read from a directory, not from a topic")
        return self

    def options(self, survey: Survey) -> Options:
        """How events are read and chosen. Raises HearsayError if attributes or rules do not fit the survey."""
        known = [attribute.name for attribute in survey.attributes]
        for name in (*(name for name in self.columns if name not in OWN), *self.choose):
            if name not in known:
                raise SettingsError(f"survey {survey.id!r} has no attribute {name!r}", f"there are {', '.join(known)}")
        single = {name: column for name, column in self.columns.items() if isinstance(column, str)}
        positions = {name: pair for name, pair in self.columns.items() if not isinstance(pair, str)}
        Chooser(survey.attributes, self.choose, positions)  # refuses rules that do not fit, before anything is read
        zone = self.zone
        if zone is None and survey.time_zone is not None:
            zone = ZoneInfo(survey.time_zone.name)
        return Options(
            ColumnMapping(
                single["person"],
                single["time"],
                {name: column for name, column in single.items() if name not in OWN},
                positions,
                self.metres,
                single.get("offset"),
            ),
            self.lateness,
            self.choose,
            zone,
            self.repeated,
            form=FileFormat(self.delimiter, encoding=self.encoding),
            time_formats=self.time_formats,
        )


def parse_edge(text: str, source: str) -> EdgeDeclaration:
    """Raises SettingsError with the line, the key and the fix, whatever the text.

    >>> parse_edge("{survey: s, events: {directory: in}, columns: {person: a, time: b}, data: d, lateness: 1}", "edge")
    Traceback (most recent call last):
    protocols.errors.SettingsError: edge: line 1: lateness = 1: not a duration; write a whole number and s, m, h, d \
or w, such as 15m or 1d (how long after a period's end its events are waited for) (docs/edge.md explains every key)
    """
    try:
        document = read_yaml(text)
    except NotPlain as error:
        raise SettingsError(f"{source}: {error}", "check indentation and quotes") from None
    try:
        return EdgeDeclaration.model_validate(document.data)
    except ValidationError as error:
        problems = explain(error, document, EdgeDeclaration)
        raise SettingsError(f"{source}: {problems}", "docs/edge.md explains every key") from None


def open_edge(
    declared: EdgeDeclaration, beside: Path, memos: SurveyMemos, sink: Sink, clock_key: bytes, kafka: KafkaSettings
) -> "DirectoryEdge | TopicEdge":
    """Paths of the declaration are relative to `beside`. `kafka` is the cluster of events over a topic."""
    survey, source = memos.respondent.scheme.survey, declared.events
    options, workspace = declared.options(survey), beside / declared.data / "edge" / survey.id
    if source.directory is not None:
        return DirectoryEdge(memos, sink, clock_key, options, beside / source.directory, workspace)
    from producers.edge.topic import EventsTopic, TopicEdge  # its client takes time that files do not need

    assert source.topic is not None and declared.idle is not None  # by the declaration
    read = csv_line(source.fields, declared.delimiter) if source.format == "csv" else json_object
    events = EventsTopic(kafka, source.topic, read, declared.encoding, declared.idle)
    return TopicEdge(memos, sink, clock_key, options, events, workspace)
