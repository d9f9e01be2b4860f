"""What people get who write `import hearsay`: names, surveys, plans, fleets, devices, estimates, runs and results."""

import json
import subprocess
import sys
import typing
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hearsay
from analytics.estimation import estimate
from hearsay.library.estimating import FIGURES
from protocols.errors import DeviceError, ResultsError, ScenarioError, SurveyError, WireError
from protocols.scheme import Scheme
from protocols.wire import CLOCK, FRAME, Clock, encode_clock
from protocols.wire.content import MAX_RECORD_BYTES
from servers.distribution import DISTRIBUTION
from tests.docs.pages import ROOT
from tests.helpers.command_line import done
from tests.helpers.surveys import scheme_with
from views.local import collector
from views.reading import Results
from views.results import histogram_table

NAMES = {
    "Device", "Fleet", "HearsayError", "Limits", "Survey", "Tables", "audit", "estimate", "estimate_counts", "evaluate",
    "forecast", "load_survey", "people", "plan", "read_results", "replay", "run", "survey_from", "synthesize",
}  # fmt: skip
HEAVY = {"numpy", "pydantic", "kafka", "pyarrow", "redis", "faust", "typer", "rich"}
SECRET = bytes(range(32))
KEY = bytes(32)
ANY = hearsay.Limits(report=1000, value=1000, year=10_000)
GRID = {"at": [47.2, 6.0], "cell": "500m", "columns": 6, "rows": 4}
COLOURS = ["red"] * 6_000 + ["blue"] * 3_000 + ["green"] * 1_000
HOURS = list(range(24)) * 417
ADJUSTED = ["adjusted", "adjusted_error", "adjusted_low", "adjusted_high"]


def test_these_are_the_names_and_each_is_explained() -> None:
    assert set(hearsay.__all__) == set(dir(hearsay)) == NAMES
    for name in NAMES:
        found = getattr(hearsay, name)
        assert found.__doc__ and "BaseModel" not in found.__doc__, name
        assert name in (ROOT / "docs" / "library.md").read_text(), name
    assert "return" in typing.get_type_hints(hearsay.estimate)
    assert hearsay.__version__ == version(DISTRIBUTION)


def test_importing_it_imports_nothing_heavy() -> None:
    listed = done(sys.executable, "-c", "import hearsay, sys; print(*sys.modules)").split()
    assert "hearsay" in listed
    assert not {name.partition(".")[0] for name in listed} & (HEAVY | {"protocols", "analytics"})


def test_a_type_checker_knows_every_name(tmp_path: Path) -> None:
    """With the settings of the project, whose check of the whole project has left most of the answer in the cache."""
    program = tmp_path / "program.py"
    program.write_text("import hearsay\n" + "".join(f"reveal_type(hearsay.{n})\n" for n in NAMES) + "hearsay.estimates")
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", str(program)],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=300,
    ).stdout.splitlines()  # fmt: skip
    revealed = [line.partition("Revealed type is ")[2] for line in checked if "Revealed type" in line]
    assert len(revealed) == len(NAMES) and not any(kind == '"Any"' for kind in revealed)
    (error,) = [line.partition(": error: ")[2] for line in checked if ": error: " in line]
    assert error == 'Module has no attribute "estimates"; maybe "estimate"?  [attr-defined]'


def test_a_survey_is_read_from_a_file_or_from_text_and_planned(tmp_path: Path) -> None:
    text = "id: s\nstart: 2026-01-01T00:00:00Z\nperiod: 1d\neps: 1\nattributes: [{name: a, values: [x, y]}]\n"
    (tmp_path / "survey.yaml").write_text(text)
    from_text, from_path = hearsay.load_survey(text), hearsay.load_survey(tmp_path / "survey.yaml")
    assert from_text == from_path == hearsay.load_survey(str(tmp_path / "survey.yaml"))
    with pytest.raises(SurveyError, match=r"nowhere\.yaml cannot be read"):
        hearsay.load_survey("nowhere.yaml")
    drawn = hearsay.plan(from_text, devices=500, error=0.02)
    assert (drawn.survey, drawn.devices, drawn.error) == ("s", 500, 0.02)


def survey(terms: str = "eps_inf: 4, eps_1: 2", more: str = "") -> hearsay.Survey:
    return hearsay.load_survey(f"""
        {{id: buttons, start: 2026-01-01T00:00:00Z, period: 1d, horizon: 3, clock: source, {terms}, attributes: [
            {{name: colour, values: [red, green, blue]{more}}}, {{name: hour, range: {{last: 23}}{more}}}]}}""")


def truth() -> dict[str, list[typing.Any]]:
    return {"colour": COLOURS, "hour": HOURS[: len(COLOURS)]}


@pytest.mark.parametrize(
    "terms",
    [
        "eps_inf: 6, eps_1: 4",
        "eps_inf: 12, eps_1: 8, solution: spl",
        "eps_inf: 6, eps_1: 4, solution: rs+fd",
        "eps: 4",
        "eps: 6, one_in: 3",
        "eps: 12, one_in: 3, solution: spl",
        "eps_inf: 4",
    ],
)
def test_a_fleets_reports_give_its_truth_back(terms: str) -> None:
    table = hearsay.estimate(survey(terms), hearsay.Fleet(survey(terms), 10_000, SECRET).report(0, truth()))
    rows = table.to_pylist()
    assert [row["value"] for row in rows] == ["red", "green", "blue", *map(str, range(24))]
    for row in rows:
        share = {"red": 0.6, "green": 0.1, "blue": 0.3}.get(row["value"], 1 / 24)
        assert abs(row["estimate"] - share) < 4 * row["error"], row
        assert row["low"] < row["estimate"] < row["high"]
    for name in ("colour", "hour"):
        assert sum(row["consistent"] for row in rows if row["attribute"] == name) == pytest.approx(1)


@pytest.mark.parametrize(
    "terms",
    [
        "eps_inf: 4, eps_1: 2",
        "eps_inf: 8, eps_1: 4, solution: spl",
        "eps: 2, one_in: 3",
        "eps: 4, one_in: 3, solution: rs+fd",
    ],
)
def test_a_collector_publishes_the_same_of_the_same_reports(terms: str, tmp_path: Path) -> None:
    fleet = hearsay.Fleet(survey(terms), 10_000, SECRET)
    some = np.arange(0, 10_000, 3)
    periods = [
        fleet.report(0, truth()),
        fleet.report(2, {name: np.array(column)[some] for name, column in truth().items()}, some),
    ]
    with collector(tmp_path, [survey(terms)], KEY, KEY) as app:
        for period, frames in zip((0, 2), periods, strict=True):
            for frame in frames:
                app.send(0, FRAME, frame)
            app.send(0, CLOCK, encode_clock(Clock("buttons", period), KEY))
        app.flush()
        assert not any(any(counter.rejects.values()) for counter in app._counters)
        published = [final for final in Results(app.store).histograms("buttons") if final.n]
    estimated = hearsay.estimate(survey(terms), [frame for each in periods for frame in each])
    table = histogram_table(published).drop_columns(["suppressed", "kind", *ADJUSTED])
    assert table.schema == estimated.schema
    for name in estimated.column_names:
        if name in FIGURES:  # with the decimals that their errors carry
            same = np.abs(table[name].to_numpy() - estimated[name].to_numpy()) <= estimated["error"].to_numpy() / 10
            assert same.all() or table[name].null_count == estimated[name].null_count == len(table)
        else:
            assert table[name] == estimated[name]
    assert published[1].attributes[0].statistics is not None
    assert published[1].attributes[0].statistics.gaps.tolist() == [2]


def test_counts_give_what_reports_give() -> None:
    one_shot = survey("eps: 1")
    reports = hearsay.Fleet(one_shot, 10_000, SECRET).report(0, truth())
    tables = [pa.ipc.open_stream(frame).read_all() for frame in reports]
    colours = [symbol for table in tables if "colour" in table.column_names for symbol in table["colour"].to_pylist()]
    hours = [bits for table in tables if "hour" in table.column_names for bits in table["hour"].to_pylist()]
    bits = np.unpackbits(np.frombuffer(b"".join(hours), np.uint8).reshape(-1, 3), axis=1, bitorder="little")
    counts = {"colour": np.bincount(colours, minlength=3), "hour": bits.sum(axis=0)}
    estimates = hearsay.estimate_counts(one_shot, counts, {"colour": len(colours), "hour": len(hours)})
    assert estimates == hearsay.estimate(one_shot, reports).drop_columns(["period", "begin", "end"])
    with pytest.raises(SurveyError, match="3 values and 2 counts"):
        hearsay.estimate_counts(one_shot, counts | {"colour": [1, 2]}, {"colour": 3, "hour": 3})
    with pytest.raises(SurveyError, match="'hour' has no counts"):
        hearsay.estimate_counts(one_shot, {"colour": [1, 2, 3]}, {"colour": 6})


def report_of(asked: hearsay.Survey, path: Path, **values: object) -> bytes:
    """What a new device reports in period 0."""
    now = asked.bounds(0)[0].timestamp()
    with hearsay.Device(path, now=lambda: now, limits=ANY) as device:
        return device.settle(device.join(Scheme(asked).terms, trust_first_use=True), values).report


def test_reports_of_devices_and_of_fleets_are_estimated_together(tmp_path: Path) -> None:
    every = survey("eps: 12, solution: spl")
    reports = [report_of(every, tmp_path / str(i), colour="red", hour=7) for i in range(20)]
    assert set(json.loads(reports[0])) == {"survey", "fingerprint", "period", "token", "gap", "answers"}
    assert len(set(map(len, reports))) == 1
    reports += hearsay.Fleet(every, 20, SECRET).report(0, {"colour": ["red"] * 20, "hour": [7] * 20})
    shares = {row["value"]: row["estimate"] for row in hearsay.estimate(every, reports).to_pylist()}
    assert shares["red"] > 0.8


def test_a_report_counts_once_and_an_attribute_without_answers_has_no_estimates(tmp_path: Path) -> None:
    report = report_of(survey(), tmp_path / "device", colour="red", hour=3)
    table = hearsay.estimate(survey(), [report, report])
    assert table == hearsay.estimate(survey(), report)
    silent = {row["attribute"] for row in table.to_pylist() if row["n"] == 0 and row["estimate"] is row["low"] is None}
    assert len(silent) == 1 and len(table) == 27
    assert len(hearsay.estimate(survey(), [])) == 0


def test_reports_that_do_not_fit_are_refused_with_the_reason(tmp_path: Path) -> None:
    report = report_of(survey(), tmp_path / "device", colour="red", hour=3)
    with pytest.raises(WireError, match="report 1: wrong-fingerprint"):
        hearsay.estimate(survey(), [report, report.replace(Scheme(survey()).fingerprint.encode(), b"0" * 32)])
    with pytest.raises(WireError, match="report 0: undecodable"):
        hearsay.estimate(survey(), b"not a frame")
    with pytest.raises(WireError, match="report 0, row 0: bad-gap"):
        hearsay.estimate(survey(), report.replace(b'"gap":"0003"', b'"gap":"0009"'))


@pytest.mark.parametrize(
    ("period", "values", "devices", "message"),
    [
        (3, {}, None, "has reported in period"),
        (2, {}, None, "has reported in period"),
        (-1, {}, None, "no period -1"),
        (4, {}, [1, 2], "not in the fleet"),
        (4, {}, [0, 0], "twice"),
        (4, {"colour": ["red", "ill"]}, None, "'colour': the value in row 1 is not one of the survey's"),
        (4, {"colour": np.array([None, "red"], dtype=object)}, None, "row 0"),
        (4, {}, [0], "2 values for 1 device"),
        (4, {"hour": None}, None, "no values of attribute 'hour'"),
    ],
)
def test_devices_report_once_in_ascending_periods_and_a_wrong_value_is_located_and_not_repeated(
    period: int, values: dict[str, typing.Any], devices: list[int] | None, message: str
) -> None:
    fleet, two = hearsay.Fleet(survey(), 2, SECRET), {"colour": ["red", "red"], "hour": [1, 2]}
    fleet.report(3, two)
    given = {name: column for name, column in (two | values).items() if column is not None}
    with pytest.raises(ScenarioError, match=message) as refused:
        fleet.report(period, given, devices)
    assert "ill" not in str(refused.value)
    with pytest.raises(SurveyError, match="memo_cap"):  # which needs a store
        hearsay.Fleet(survey("eps_inf: 4, eps_1: 2, memo_cap: 2"), 2)


def test_sets_of_a_fleet_are_any_iterables_but_texts() -> None:
    """A text would be taken apart into its letters, and may name a person: it is not repeated."""
    features = {"name": "features", "values": ["sync", "mail", "maps", "chat"], "several": 2}
    asked = scheme_with(features, eps_inf=None, eps_1=None, eps=2.0).survey
    sets: list[typing.Any] = [{"sync"}, ("sync", "mail"), iter(["mail"]), {"mail": 1}.keys()]
    assert len(hearsay.Fleet(asked, 4, SECRET).report(0, {"features": sets})) == 1
    for wrong in ("sync", 7):
        with pytest.raises(ScenarioError, match=r"row 1 is (str|int), and no set of values") as refused:
            hearsay.Fleet(asked, 2, SECRET).report(0, {"features": [["mail"], wrong]})
        assert "sync" not in str(refused.value)


def test_wide_answers_of_a_fleet_are_cut_into_frames_that_fit() -> None:
    names = [f"v{number}" for number in range(9000)]
    asked = scheme_with({"name": "a", "values": names, "mechanism": "oue"}, eps_inf=None, eps_1=None, eps=1.0).survey
    frames = hearsay.Fleet(asked, 4000, SECRET).report(0, {"a": names[:4000]})
    assert len(frames) > 1
    assert max(map(len, frames)) <= MAX_RECORD_BYTES
    assert hearsay.estimate(asked, frames).num_rows == 9000


def test_a_device_near_a_border_keeps_its_cell_also_if_it_does_not_know_where_it_is(tmp_path: Path) -> None:
    """The memo is sent, so the same report again means the same cell."""
    scheme = scheme_with({"name": "place", "grid": GRID, "geo_inf": {"level": 1.1, "radius": "400m"}}, memo_cap=3)
    moment = [datetime(2026, 1, 1, 12, tzinfo=UTC)]
    near: list[typing.Any] = [{"x": x, "y": 700.0} for x in (990.0, 1010.0, 1120.0)]
    wrong = [{"x": 1.0}, {"latitude": "here", "longitude": 6}, {"x": float("nan"), "y": 1.0}, "x9y9", None]
    with hearsay.Device(
        tmp_path / "device.db",
        limits=hearsay.Limits(report=1e6, value=1e6, year=1e7, ratio=1),
        now=lambda: moment[0].timestamp(),
    ) as device:
        survey = device.join(scheme.terms, trust_first_use=True)
        sent = []
        for day, position in enumerate([*near, *wrong], 1):
            moment[0] = datetime(2026, 1, day, 12, tzinfo=UTC)
            report = device.settle(survey, {"place": position})
            sent.append(json.loads(report.report)["answers"]["place"])
            assert report.unlisted == (() if position in near else ("place",))
        assert len(set(sent)) == 1
        assert device.explain()["metres"] == {"place": 500.0}, "chances are for two positions so far apart"


def test_limits_count_what_two_positions_500_metres_apart_reveal(tmp_path: Path) -> None:
    weak = scheme_with({"name": "place", "grid": GRID, "geo": {"level": 1.7, "radius": "400m"}})
    with hearsay.Device(tmp_path / "device.db") as device, pytest.raises(DeviceError, match=r"may reveal 1\.7,"):
        device.join(weak.terms, trust_first_use=True)


def test_a_run_gives_what_can_be_read_afterwards_and_the_truth(tmp_path: Path) -> None:
    ran = hearsay.run(survey(), devices=300, periods=2, data=tmp_path)
    read = hearsay.read_results(tmp_path)
    assert read["histograms"] == ran["histograms"]
    published = ["suppressed", "kind", *ADJUSTED]
    estimated = hearsay.estimate(survey(), []).column_names
    assert [name for name in read.everything["histograms"].column_names if name not in published] == estimated
    assert ran["visitors"]["truth"].to_pylist() == [round(n) for n in read["visitors"]["visitors"].to_pylist()]
    assert read["visitors"]["truth"] == ran["visitors"]["truth"], "it is kept with the results"
    assert "<table>" in read._repr_html_() and "visitors (3)" in repr(read)
    with pytest.raises(SurveyError, match="no survey 'other'"):
        hearsay.read_results(tmp_path, survey="other")


def test_a_run_without_a_directory_leaves_nothing_behind_and_results_are_read_from_one_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert len(hearsay.run(survey(), devices=50, periods=1)["visitors"]) == 1
    assert list(tmp_path.iterdir()) == []
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ResultsError, match="there are no results in hearsay-data"):
        hearsay.read_results()
    with pytest.raises(ResultsError, match="contains no results"):
        hearsay.read_results(tmp_path / "nothing")
    assert not (tmp_path / "nothing").exists()


def test_methods_are_compared_on_ones_own_data() -> None:
    table = hearsay.evaluate(
        {"colour": COLOURS, "hour": HOURS[:10_000]}, eps=[1], methods=["smp[l-grr]", "smp[l-oue]"], alpha=0.9, runs=5
    )
    scores = {row["correction"]: row for row in table.to_pylist()}
    assert list(scores) == ["raw", "norm-sub", "clip", None]
    assert 0.5 < scores["raw"]["mse"] / scores["raw"]["expected_mse"] < 2
    assert scores["raw"]["reveals"] == pytest.approx(0.9)
    assert scores[None]["method"] == "smp[l-oue]" and "eps_1" in scores[None]["infeasible"]
    with pytest.raises(ScenarioError, match="'hour' has 1 different"):
        hearsay.evaluate({"hour": [3, 3]})
    with pytest.raises(hearsay.HearsayError, match="dict is no table"):
        hearsay.evaluate({"colour": ["a", "b"], "hour": [3]})
    with pytest.raises(ScenarioError, match="'best' is no correction"):
        hearsay.evaluate({"colour": COLOURS}, corrections=["best"])


def test_crosses_labels_and_places_are_evaluated() -> None:
    random = np.random.default_rng(1)
    plan = random.choice(["basic", "pro"], 4000)
    people = {"plan": plan, "paid": np.where(random.random(4000) < 0.9, plan == "pro", plan != "pro")}
    crossed = hearsay.evaluate(people, [4], ["smp[grr]"], crosses=["plan*paid"], corrections=["likeliest"], runs=2)
    assert crossed["correction"].to_pylist() == ["likeliest"] and crossed["mse"][0].as_py() < 1e-2
    learnt = {row["source"]: row["accuracy"] for row in hearsay.evaluate(people, [4], label="paid", runs=2).to_pylist()}
    assert learnt["crosses"] > 0.85 > 0.6 > learnt["majority class"]
    grid = {"at": [47.0, 6.0], "cell": "500m", "columns": 4, "rows": 4}
    asked = {"name": "place", "grid": grid, "geo": {"level": 2, "radius": "500m"}}
    terms = {"id": "p", "start": "2026-01-01T00:00:00Z", "period": "1d", "attributes": [asked]}
    positions = {"x": random.uniform(0, 2000, 2000), "y": random.uniform(0, 2000, 2000)}
    how: dict[str, typing.Any] = {
        "places": hearsay.load_survey(terms),
        "positions": {"place": ("x", "y")},
        "metres": True,
        "runs": 2,
    }
    placed = hearsay.evaluate(positions, [2], ["geo-grid"], **how)
    assert 0 < placed["metres_off"][0].as_py() < 500


def test_a_table_of_events_becomes_results_by_the_local_clock(tmp_path: Path) -> None:
    local = {"start": "2026-01-01T00:00:00+01:00", "time_zone": "Europe/Paris"}
    asked = hearsay.load_survey(survey("eps_inf: 8, eps_1: 6").model_dump(exclude_defaults=True) | local)
    at = [datetime(2026, 1, 1 + row // 1000, 23, 30, tzinfo=UTC) for row in range(2000)]
    events = {"who": np.arange(2000) % 1000, "at": at, "shade": ["red"] * 2000, "hour": [3] * 2000}
    tables = hearsay.replay(events, asked, person="who", time="at", columns={"colour": "shade"}, data=tmp_path)
    days = tables["visitors"].to_pylist()
    assert [(row["begin"].isoformat(), row["visitors"]) for row in days if row["kind"] == "period"][-2:] == [
        ("2026-01-02T00:00:00+01:00", 1000.0), ("2026-01-03T00:00:00+01:00", 1000.0),
    ]  # fmt: skip
    shares = {row["value"]: row["estimate"] for row in tables["histograms"].to_pylist() if row["attribute"] == "colour"}
    assert shares["red"] > 0.9
    pq.write_table(pa.table(events), tmp_path / "events.parquet")
    options = {"person": "who", "time": "at", "columns": {"colour": "shade"}, "data": tmp_path / "again"}
    assert hearsay.replay(str(tmp_path / "events.parquet"), asked, **options)["visitors"] == tables["visitors"]
    with pytest.raises(hearsay.HearsayError, match="no table"):
        hearsay.replay({"who": [1], "at": at}, asked, person="who", time="at")


def test_tables_and_results_are_forecast(tmp_path: Path) -> None:
    days = [f"2026-01-{day:02}" for day in range(1, 32)]
    ahead = hearsay.forecast({"day": days, "riders": [100 + day % 7 for day in range(31)]}, ahead=7, backtest=8)
    (path := tmp_path / "riders.csv").write_text(
        "day,riders\n" + "".join(f"{d},{100 + i % 7}\n" for i, d in enumerate(days))
    )
    assert ahead.table == hearsay.forecast(str(path), ahead=7, backtest=8).table
    with pytest.raises(ResultsError, match="before the backtest: 0 values"):
        hearsay.forecast(str(path), season=[7], backtest=40)
    assert ahead.table["time"][0].as_py() == "2026-02-01 00:00:00" and "2026-02-01" in ahead._repr_html_()
    hearsay.run(survey(), devices=100, periods=21, data=tmp_path / "run")
    people = hearsay.forecast(tmp_path / "run", ahead=2, season=(), measure="visitors").table
    assert 50 < people["mean"][0].as_py() < 120


def test_a_survey_is_proposed_from_a_table() -> None:
    """Failure would look like: a name, or the highest salary of all, in a file that is published."""
    random = np.random.default_rng(2)
    table = {
        "Home town": ["Besançon"] * 600 + ["Dole"] * 395 + ["Ville-du-Pont"] * 5,
        "salary": [*random.normal(3000, 500, 999).round(2), 9e6],
        "name": [f"person {row}" for row in range(1000)],
        "home_town": ["a", "b"] * 500,
    }
    proposed = hearsay.survey_from(table)
    assert {a.name: a.values[:3] for a in proposed.attributes if a.range is None} == {
        "home_town": ("Besançon", "Dole", "other"), "home_town_2": ("a", "b"),
    }  # fmt: skip
    (salary,) = (a for a in proposed.attributes if a.range)
    assert salary.range is not None and salary.range.step == 200 and 4000 < salary.range.last < 5000 and salary.k <= 20
    assert "name (1,000 different entries)" in proposed.description and "9000000" not in proposed.model_dump_json()
    assert hearsay.load_survey(proposed.model_dump(mode="json")) == proposed
    assert "salary" in proposed._repr_html_() and "salary" in hearsay.plan(proposed)._repr_html_()
    with pytest.raises(ScenarioError, match="no column of the table can be asked"):
        hearsay.survey_from({"name": table["name"]})


def test_an_audit_is_what_the_command_shows() -> None:
    computed = hearsay.audit(survey(), only=["guess"])
    assert {figure.attack for figure in computed.figures} == {"guess"} and "<table>" in computed._repr_html_()
    measured = hearsay.audit(
        survey("eps: 4"), values={"colour": COLOURS[:900], "hour": HOURS[:900]}, only=["guess"], periods=1
    )
    assert (measured.devices, measured.periods) == (900, 1) and any(f.measured for f in measured.figures)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda survey: hearsay.estimate(None, b""),
        lambda survey: hearsay.estimate(survey, None),
        lambda survey: hearsay.estimate(survey, [None]),
        lambda survey: hearsay.estimate(survey, "text"),
        lambda survey: hearsay.estimate(survey, [], confidence=95),
        lambda survey: hearsay.estimate_counts(None, {"a": [1, 2]}, {"a": 3}),
        lambda survey: hearsay.estimate_counts(survey, None, {"a": 3}),
        lambda survey: hearsay.estimate_counts(survey, {"a": None}, {"a": 3}),
        lambda survey: hearsay.estimate_counts(survey, {"a": [1, None]}, {"a": 3}),
        lambda survey: hearsay.estimate_counts(survey, {"a": [1.5, 1]}, {"a": 3}),
        lambda survey: hearsay.estimate_counts(survey, {"a": [-1, 1]}, {"a": 3}),
        lambda survey: hearsay.estimate_counts(survey, {"a": [100, 0]}, {"a": 10}),
        lambda survey: hearsay.estimate_counts(survey, {"a": [5, 6]}, {"a": 10}),
        lambda survey: hearsay.estimate_counts(survey, {"a": [1, 2]}, {"a": None}),
        lambda survey: estimate(None, 10, Scheme(survey).questions[0].channel),
        lambda survey: estimate([1, 2], None, Scheme(survey).questions[0].channel),
    ],
)
def test_what_is_no_count_and_no_report_is_refused_with_a_sentence(wrong: Callable[[hearsay.Survey], object]) -> None:
    survey = hearsay.load_survey(
        "{id: s, start: 2026-01-01T00:00:00Z, period: 1d, eps: 1, attributes: [{name: a, values: [x, y]}]}"
    )
    with pytest.raises(hearsay.HearsayError) as refused:
        wrong(survey)
    assert refused.value.hint
