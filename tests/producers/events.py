"""What happened to a few people, the files that say so, and what a careful person computes from them."""

import csv
import random
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from producers.events import Options, Rule
from producers.events.interpreting import People
from producers.files import ColumnMapping
from producers.replay import Replay
from protocols.respondent import Respondent
from protocols.scheme import Scheme
from protocols.survey_text import parse_survey
from tests.helpers.sinks import KeepingSink
from tests.producers.populations import KEYRING

START = datetime(2026, 1, 1, tzinfo=UTC)
AREAS = ("north", "south", "east", "west")
RULES = {"area": Rule.MOST, "dwell": Rule.FIRST}
COLUMNS = ColumnMapping("msisdn", "at", {"area": "cell", "dwell": "minutes"})
OPTIONS = Options(COLUMNS, timedelta(hours=2), RULES, until=START + timedelta(days=30))
EVENTS = Path("events.csv")


def survey(
    solution: str = "spl", budgets: str = "eps_inf: 20", extra: str = "clock: source", other: str | None = None
) -> Scheme:
    """The memo is sent: reports show which value was chosen."""
    return Scheme(
        parse_survey(
            f"{{id: cdr, start: {START.isoformat()}, period: 6h, horizon: 4, solution: {solution}, {budgets}, {extra}, "
            f"attributes: [{{name: area, values: [{', '.join(AREAS)}]{f', other: {other}' if other else ''}}}, "
            "{name: dwell, range: {last: 29, step: 10}}]}"
        )
    )


@dataclass(frozen=True)
class Event:
    person: str
    at: datetime
    area: str
    minutes: int

    def row(self) -> list[str]:
        return [self.person, self.at.isoformat(), self.area, str(self.minutes)]


def history(people: int = 40, days: int = 3, seed: int = 1) -> list[Event]:
    """What really happened, in the order of time."""
    rng = random.Random(seed)
    moments = sorted(rng.randrange(days * 86_400) for _ in range(people * days * 8))
    return [
        Event(f"+33{rng.randrange(people):09d}", START + timedelta(seconds=s), rng.choice(AREAS), rng.randrange(30))
        for s in moments
    ]


def write(path: Path, rows: list[list[str]]) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([["msisdn", "at", "cell", "minutes"], *rows])
    return path


def nearly_sorted(events: list[Event], tolerance: timedelta, seed: int = 2) -> list[Event]:
    """Shuffled, but no event stands more than the tolerance behind a later one."""
    rng = random.Random(seed)
    return sorted(events, key=lambda e: e.at + rng.random() * tolerance)


def computed(events: list[Event]) -> dict[tuple[int, str], dict[str, int]]:
    """(period, person) -> what must be reported, the slow way: one person, one period at a time."""
    groups: dict[tuple[int, str], list[Event]] = defaultdict(list)
    for event in set(events):
        groups[(event.at - START) // timedelta(hours=6), event.person].append(event)
    out = {}
    for key, group in groups.items():
        counts = Counter(AREAS.index(e.area) for e in group)
        most = min(counts, key=lambda area: (-counts[area], area))
        first = min((e.at, e.minutes // 10) for e in group)[1]
        out[key] = {"area": most, "dwell": first}
    return _memos(out)


def _memos(chosen: dict[tuple[int, str], dict[str, int]]) -> dict[tuple[int, str], dict[str, int]]:
    """With this budget nearly always the value itself."""
    respondent = Respondent(survey(), KEYRING)
    devices = People(KEYRING).devices(pa.array([person for _, person in chosen]))
    columns = {
        q.name: respondent.memoise(q, devices, np.array([values[q.name] for values in chosen.values()])).tolist()
        for q in respondent.scheme.questions
    }
    return {key: {name: column[i] for name, column in columns.items()} for i, key in enumerate(chosen)}


def reported(sink: KeepingSink, scheme: Scheme, people: set[str]) -> dict[tuple[int, str], dict[str, int]]:
    """(period, person) -> what was reported; each must have been reported once."""
    respondent = Respondent(scheme, KEYRING)
    names = sorted(people)
    devices = People(KEYRING).devices(pa.array(names))
    out = {}
    for frame in sink.frames(scheme):
        owner = dict(zip(respondent.tokens(devices, frame.period).tolist(), names, strict=True))
        for i, token in enumerate(frame.tokens.tolist()):
            key = (frame.period, owner[token])
            assert key not in out, "one person, one period, two reports"
            out[key] = {name: int(column[i]) for name, column in frame.answers.items()}
    return out


MakeReplay = Callable[..., Replay]
