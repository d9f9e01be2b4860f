"""A survey of local days around a clock change, and events of people at local times."""

from pathlib import Path

PEOPLE = 1000
DAYS = ("2026-03-28", "2026-03-29", "2026-03-30", "2026-03-31")  # clocks are put forward on the 29th
SURVEY = """
id: paris
start: 2026-03-28T00:00:00+01:00
period: 1d
time_zone: Europe/Paris
horizon: 4
clock: source
eps_inf: 4
eps_1: 2
attributes:
  - {name: area, values: [north, south], role: area}
"""


def write_events(path: Path) -> None:
    """Everybody comes on every day, one half at half past midnight and one half at noon, by the clock on the wall."""
    rows = [
        f"{person},{day} {'00:30' if person % 2 else '12:00'}:00,{'north' if person % 3 else 'south'},"
        f"{person % 700},{person % 900}"
        for day in DAYS
        for half in (1, 0)
        for person in range(half, PEOPLE, 2)
    ]
    path.write_text("\n".join(["person,time,area,east,north", *rows, ""]))
