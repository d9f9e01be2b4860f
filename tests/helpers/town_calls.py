"""The calls of a town while clocks are put back: duplicates, events out of order and late ones, at local times.

The truth is computed here one event at a time, by the definition of "in time", and not as the edge does it.
"""

import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from pathlib import Path
from zoneinfo import ZoneInfo

PARIS = ZoneInfo("Europe/Paris")
START = datetime(2026, 10, 23, 22, tzinfo=UTC)  # midnight in Paris; clocks are put back on the 25th
AREAS = ("north", "south", "east", "west")
LATENESS = timedelta(hours=2)
MARKER = "person-4711-"
"""Begins all identifiers, so that a search finds a leak."""
SURVEY = f"""
id: town
start: {START.astimezone(PARIS).isoformat()}
period: 6h
time_zone: Europe/Paris
horizon: 4
eps_inf: 4
eps_1: 2
clock: source
attributes:
  - {{name: area, role: area, values: [{", ".join(AREAS)}]}}
  - {{name: way, role: transition, values: [{", ".join(f"{a}>{b}" for a in AREAS for b in AREAS)}]}}
"""
EDGE = """
survey: survey.yaml
events: {directory: dropped}
columns: {person: msisdn, time: at, offset: ahead, area: cell, way: cell}
choose: {area: longest, way: transition}
lateness: 2h
data: data
"""
HEADER = "msisdn,at,ahead,cell\n"


@dataclass(frozen=True)
class Call:
    person: int
    at: datetime  # UTC
    area: str

    def row(self) -> str:
        local = self.at.astimezone(PARIS)
        return f"{MARKER}{self.person},{local:%Y-%m-%d %H:%M:%S},{local.isoformat()[-6:]},{self.area}\n"


def as_record(call: Call) -> tuple[bytes, bytes]:
    """The value and the key of a call on a topic."""
    local, person = call.at.astimezone(PARIS).isoformat(" "), f"{MARKER}{call.person}"
    row = {"msisdn": person, "at": local[:-6], "ahead": local[-6:], "cell": call.area}
    return json.dumps(row).encode(), person.encode()


def calls(people: int, days: int, seed: int = 1) -> list[Call]:
    """In the order in which they come."""
    return [call for _, call in arrivals(range(people), days, seed)]


def arrivals(
    people: Iterable[int], days: int, seed: int, begin: datetime = START, areas: Sequence[str] = AREAS
) -> list[tuple[datetime, Call]]:
    """Calls, and when they come: most within 90 minutes, one in 50 some hours late, one in 20 twice."""
    rng = random.Random(seed)
    came: list[tuple[datetime, Call]] = []
    for person in people:
        for _ in range(4 * days):
            at = begin + timedelta(seconds=rng.randrange(days * 86_400))
            call = Call(person, at, areas[(person + rng.choice((0, 0, 1, 2))) % len(areas)])
            delay = timedelta(minutes=rng.randrange(90 if rng.randrange(50) else 1200))
            came += [(at + delay, call)] * (2 if rng.randrange(20) == 0 else 1)
    return sorted(came, key=itemgetter(0))


def in_time(came: list[Call]) -> list[Call]:
    """Those that are read before an event that is later than the end of their period by the lateness."""
    found, latest = [], START
    for call in came:
        latest = max(latest, call.at)
        end = START + ((call.at - START) // timedelta(hours=6) + 1) * timedelta(hours=6)
        if latest < end + LATENESS:
            found.append(call)
    return found


def write(path: Path, some: list[Call]) -> Path:
    """As an operator drops files: complete when it has its name."""
    draft = path.with_suffix(".part")
    draft.write_text(HEADER + "".join(call.row() for call in some))
    return draft.rename(path)
