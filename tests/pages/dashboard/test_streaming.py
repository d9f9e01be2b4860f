"""Results as they come, to viewers and as files."""

import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow.csv
import pyarrow.parquet
import pytest

from analytics.mobility import tables
from hearsay.reports import serving
from hearsay.reports.files import mobility_of
from hearsay.reports.serving import Published
from pages.dashboard import Source
from pages.dashboard import source as source_module
from pages.dashboard.feed import Position, Result
from pages.dashboard.streaming import segment
from stream_app.local import DirectoryFollower, LocalStore
from tests.helpers.collecting import collecting, small_survey
from tests.helpers.dashboards import Running, Viewer, ask, dashboard, unread
from tests.helpers.eventually import eventually
from views.reading import Results

FINALS = {"mobility/colours/0", "mobility/colours/1"}


@pytest.fixture
def source(tmp_path: Path) -> Iterator[Source]:
    """Two closed periods and an open one."""
    with collecting(tmp_path, small_survey()) as (colours,):
        colours.finish([30, 20, 10], [33, 22, 11])
        colours.report(2, [40, 0, 0])
        yield Source(lambda: DirectoryFollower(tmp_path))


def has(*keys: str) -> Any:
    return lambda viewer: set(keys) <= set(viewer.state)


@pytest.mark.parametrize("compressed", [True, False])
def test_a_viewer_is_sent_the_results_as_they_are_published(source: Source, tmp_path: Path, compressed: bool) -> None:
    with dashboard(source) as running:
        viewer = Viewer(running, "colours")
        viewer.view(has(*FINALS, "live/colours", "survey/colours", "status/colours", "status"), compressed)
    with closing(LocalStore.existing(tmp_path)) as store:
        (first, second), live = Results(store).mobility("colours"), Results(store).live("colours")
    assert live is not None
    for period, published in enumerate((first, second)):
        shown = viewer.state[f"mobility/colours/{period}"]["record"]["windows"]
        for window in shown:
            one = published.window(window["first"], window["last"])
            if one.suppressed:  # nobody came twice, which is too few to say so
                assert one.first < one.last and "visitors" not in window
                continue
            assert one.visitors is not None and window["visitors"]["value"] == one.visitors.value
            shares = one.attribute("colour").values
            assert shares is not None
            assert window["attributes"][0]["values"]["share"]["value"] == shares.share.value.tolist()
    (provisional,) = viewer.state["live/colours"]["record"]["open"]
    assert (provisional["kind"], provisional["n"]) == ("provisional", live.open[0].n)
    assert viewer.state["survey/colours"]["record"]["attributes"][0]["values"] == ["red", "green", "blue"]


@pytest.mark.parametrize("last", ["0123:7", "nonsense", "41504204a69cef2d:1.2.3"])
def test_a_position_in_something_else_begins_again(source: Source, last: str) -> None:
    with dashboard(source) as running:
        viewer = Viewer(running, "colours", last_id=last, state={"mobility/gone/0": {}})
        viewer.view(has(*FINALS))
    assert viewer.resets == 1 and "mobility/gone/0" not in viewer.state


def test_a_directory_that_was_made_again_replaces_what_viewers_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_module, "CHECK_SECONDS", 0.1)
    first, second = tmp_path / "first", tmp_path / "second"
    with collecting(first, small_survey()) as (colours,):
        colours.finish([30, 20, 10])
    with collecting(second, small_survey("shapes")) as (shapes,):
        shapes.finish([20, 20, 20])
    place = tmp_path / "place"
    first.rename(place)
    with dashboard(Source(lambda: DirectoryFollower(place))) as running:
        viewer = Viewer(running)
        viewer.view(has("status/colours"))
        place.rename(first)
        second.rename(place)
        viewer.view(has("status/shapes"))
    assert "status/colours" not in viewer.state


def test_surveys_that_were_not_asked_for_are_not_shown(tmp_path: Path) -> None:
    with collecting(tmp_path, small_survey(), small_survey("shapes")) as both:
        for one in both:
            one.finish([30, 20, 10])
        with dashboard(Source(lambda: DirectoryFollower(tmp_path), ["shapes"])) as running:
            viewer = Viewer(running)
            viewer.view(has("status/shapes"))
            assert "status/colours" not in viewer.state
            assert "colours" not in running.source.feed._results


def test_a_viewer_that_reads_nothing_holds_up_nobody_and_takes_no_memory(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "REQUEST_SECONDS", 600.0)
    with dashboard(source) as running, closing(unread(running, "/events?survey=colours")):
        feed = running.source.feed
        eventually(lambda: len(feed.viewers) == 1)
        big = json.dumps({"kind": "live", "survey": "colours", "key": "live/colours", "record": {"x": "y" * 1_000_000}})
        viewer = Viewer(running, "colours")
        viewer.view(has(*FINALS))
        (first,) = feed.position.offsets
        for number in range(first, first + 200):
            running.publish(Result("live/colours", "colours", 0, number, segment(big.encode())))
        viewer.view(lambda one: one.last_id.endswith(f":{first + 200}"), compressed=False)
        eventually(lambda: len(feed.viewers) == 1)  # the one that reads nothing
        assert sum(len(one.segment) for one in feed.changes(Position("", (0,)), "colours")) < 1_000_000, (
            "one version of each key is held"
        )


def test_a_viewer_that_takes_nothing_for_long_is_disconnected(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "REQUEST_SECONDS", 0.2)
    with dashboard(source) as running, closing(unread(running, "/events?survey=colours")):
        feed = running.source.feed
        eventually(lambda: len(feed.viewers) == 1)
        (first,) = feed.position.offsets
        big = json.dumps({"kind": "live", "survey": "colours", "key": "live/colours", "record": "y" * 20_000_000})
        running.publish(Result("live/colours", "colours", 0, first, segment(big.encode())))
        eventually(lambda: not feed.viewers)


def test_suppressed_values_never_leave_the_server(tmp_path: Path) -> None:
    with collecting(tmp_path, small_survey()) as (colours,):
        colours.finish([7, 6, 4], [30, 20, 10])  # at first fewer than the minimum of 20
        colours.report(2, [13, 0, 0])
        with dashboard(Source(lambda: DirectoryFollower(tmp_path))) as running:
            viewer = Viewer(running, "colours")
            viewer.view(has("mobility/colours/1", "live/colours", "status/colours"))
            overview = Viewer(running)
            overview.view(has("status/colours"))
    (window,) = viewer.state["mobility/colours/0"]["record"]["windows"]
    assert window["suppressed"] == "minimum" and "visitors" not in window
    assert [part.get("values") for part in window["attributes"]] in ([], [None])
    assert viewer.state["live/colours"]["record"]["open"] == []
    for status in (viewer.state["status/colours"], overview.state["status/colours"]):
        record = status["record"]
        assert [period["n"] for period in record["periods"]] == [None, 60]
        assert record["open"] == []
    numbers = set(re.findall(r"[\d.]+", json.dumps([viewer.state, overview.state])))
    assert not numbers & {"17", "77"}, "reports of the first period, and of the first two"


def test_streams_end_when_the_dashboard_does(source: Source) -> None:
    with ThreadPoolExecutor(1) as pool:
        with dashboard(source) as running:
            viewer = Viewer(running, "colours")
            viewing = pool.submit(viewer.view, lambda one: False)
            eventually(lambda: len(running.source.feed.viewers) == 1)
        with pytest.raises(AssertionError, match="the stream has ended"):
            viewing.result(30)


def test_a_survey_that_is_not_there_has_no_page(source: Source) -> None:
    with dashboard(source) as running:
        assert [ask(running, f"/?survey={id}")[0] for id in ("colours", "colors", "%3Cscript%3E")] == [200, 404, 404]


def test_too_many_viewers_are_refused(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pages.dashboard.streaming.MOST_VIEWERS", 0)
    with dashboard(source) as running:
        assert ask(running, "/events")[0] == 503


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    with collecting(tmp_path / "collector", small_survey(values=("=1+1", "green", "blue"))) as (colours,):
        colours.finish([30, 20, 10], [3, 2, 1])  # in the second too few
    published = Published([], tmp_path, None)
    with dashboard(Source(published.follow), download=published.download) as found:
        yield found


def get(running: Running, path: str, status: int = 200) -> bytes:
    found, _, body = ask(running, f"/download/colours/{path}")
    assert found == status, body
    return body


def test_every_table_in_every_format(running: Running, tmp_path: Path) -> None:
    with closing(LocalStore.existing(tmp_path / "collector")) as store:
        expected = tables(mobility_of(Results(store), "colours"))
    for name, table in expected.items():
        assert pyarrow.parquet.read_table(BytesIO(get(running, f"{name}.parquet"))).to_pydict() == table.to_pydict()
        rows = json.loads(get(running, f"{name}.json"))
        assert [list(row) for row in rows] == [table.column_names] * len(table)
        if len(table):
            assert len(pyarrow.csv.read_csv(BytesIO(get(running, f"{name}.csv")))) == len(table)
    histograms = pyarrow.parquet.read_table(BytesIO(get(running, "histograms.parquet")))
    assert histograms["value"].to_pylist() == ["=1+1", "green", "blue"] * 2


def test_one_attribute_alone(running: Running) -> None:
    rows = json.loads(get(running, "values.json?attribute=colour"))
    assert rows and {row["attribute"] for row in rows} == {"colour"}
    assert json.loads(get(running, "values.json?attribute=size")) == []
    assert b"not about attributes" in get(running, "visitors.json?attribute=colour", 404)


def test_suppressed_values_are_in_no_download(running: Running) -> None:
    for row in json.loads(get(running, "visitors.json")):
        assert (row["visitors"] is None) == (row["suppressed"] is not None) == (row["first"] == 1)
    for row in json.loads(get(running, "histograms.json")):
        assert (row["n"] is None) == (row["period"] == 1) == (row["estimate"] is None)


def test_a_spreadsheet_finds_no_formula(running: Running) -> None:
    assert b'"\'=1+1"' in get(running, "values.csv")


def test_a_file_has_a_name(running: Running) -> None:
    _, headers, _ = ask(running, "/download/colours/values.csv?attribute=col%22our")
    assert headers["content-disposition"] == 'attachment; filename="colours-values-col-our.csv"'


@pytest.mark.parametrize("path", ["nothing.csv", "values.exe", "../../etc/passwd.csv"])
def test_there_is_nothing_else(running: Running, path: str) -> None:
    get(running, path, 404)
