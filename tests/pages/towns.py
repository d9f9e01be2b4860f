"""A small town whose page has everything: areas with shapes, flows, dwell times, groups, a forecast, an open period."""

import json
from functools import cache
from itertools import product
from typing import Any

from analytics.mobility import MobilityReport, with_truth
from analytics.windows import Window
from hearsay.running.simulating import count_windows
from pages.about import survey_event
from pages.events import Event, event, result_events
from pages.shapes import parse_shapes
from producers.scenarios import scenario
from protocols.scheme import Scheme
from protocols.survey import Survey
from protocols.survey_text import parse_survey
from tests.helpers.published import part, publish
from tests.helpers.town import live
from views.forecasts import ForecastResult, ForecastTable, Intervals

HOURS = 60
WIDTHS = (("truth", 80, 20), ("truth", 95, 30), ("publication", 80, 40), ("publication", 95, 60))  # of intervals
OPEN = HOURS  # the period that is still open


@cache
def town_scheme() -> Scheme:
    town = scenario("commuters", devices=2000, periods=HOURS, rows=3, columns=3, activity=0.2)
    areas, flows = (", ".join(f"'{value}'" for value in town.attributes[name]) for name in ("area", "transition"))
    text = f"""{{id: town, title: "A town & its <people>", start: 2026-01-05T00:00:00Z, period: 1h, horizon: 48,
        minimum: 30, eps_inf: 6, eps_1: 5, solution: spl, areas: town.geojson, attributes: [
        {{name: area, role: area, values: [{areas}], groups: {{north: [r0c0, r0c1, r0c2]}}}},
        {{name: transition, role: transition, values: [{flows}]}},
        {{name: dwell, role: dwell, range: {{first: 1, last: 8}}}}]}}"""
    return Scheme(parse_survey(text))


@cache
def town_report() -> MobilityReport:
    town = scenario("commuters", devices=2000, periods=HOURS, rows=3, columns=3, activity=0.2)
    hours = [Window(t, t) for t in range(HOURS)]
    published = publish(part(live(town_scheme(), town), 1, HOURS - 1))  # without period 0 people come back
    return with_truth(published, count_windows(town, hours))


def town_shapes() -> str:
    """Squares, as a GeoJSON file has them; the last area has none. Flows are between quarters; one has none."""
    squares = [(row, column) for row, column in product(range(3), range(3)) if (row, column) != (2, 2)]
    areas = [square(f"r{row}c{column}", 6.0 + column / 50, 47.0 - row / 50, 1 / 50) for row, column in squares]
    quarters = [
        square(name, 6.0 + x, 46.97 + y, 0.03) for name, x, y in (("NW", 0, 0.03), ("NE", 0.03, 0.03), ("SW", 0, 0))
    ]
    return json.dumps({"type": "FeatureCollection", "features": areas + quarters})


def square(name: str, x: float, y: float, size: float) -> dict[str, Any]:
    """A feature as a GeoJSON file has them."""
    ring = [[x, y], [x + size, y], [x + size, y + size], [x, y + size], [x, y]]
    geometry = {"type": "Polygon", "coordinates": [ring]}
    return {"type": "Feature", "properties": {"name": name}, "geometry": geometry}


def town_events() -> list[Event]:
    """Everything that a page of the town is told."""
    survey, report = town_scheme().survey, town_report()
    shapes = parse_shapes(town_shapes(), survey, "town.geojson")
    about = survey_event(survey, shapes=shapes, notes=report.notes)
    return [about, *result_events(survey, report, None, [_forecast(survey)]), _live(survey)]


def _live(survey: Survey) -> Event:
    """One open period, with a provisional histogram of areas."""
    begin, end = survey.bounds(OPEN)
    k = survey.attribute("area").k
    shares = {"estimate": 0.1, "error": 0.02, "low": 0.06, "high": 0.14, "consistent": 1 / k}
    area = {"name": "area", "n": 321, **{name: [share] * k for name, share in shares.items()}}
    provisional = {
        "kind": "provisional",
        "survey": survey.id,
        "period": OPEN,
        "begin": begin.isoformat(),
        "end": end.isoformat(),
        "n": 321,
        "attributes": [area],
    }
    record = {"closed_through": HOURS - 1, "open": [provisional], "rejects": {"late": 4}, "lates": {}, "lost": []}
    return event("live", survey.id, record)


def _forecast(survey: Survey) -> ForecastResult:
    """What was forecast after the last final: of all visitors; the newest publication was unexpected."""
    ends = {
        f"{kind}_{size}": Intervals(low=[[300.0 - width]] * 3, high=[[300.0 + width]] * 3)
        for kind, size, width in WIDTHS
    }
    about = {"kind": "visitors", "attribute": None, "names": ("visitors",), "suppressed": None}
    mean = [[300.0], [310.0], [305.0]]
    visitors = ForecastTable.model_validate({**about, "mean": mean, "unexpected": ("visitors",), **ends})
    return ForecastResult(
        survey=survey.id,
        fingerprint=town_scheme().fingerprint,
        period=HOURS - 1,
        begin=survey.bounds(HOURS)[0],
        period_seconds=3600,
        model="structural",
        seasons=(24,),
        fitted_after=HOURS - 1,
        trained=HOURS,
        tables=(visitors,),
    )
