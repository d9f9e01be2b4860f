"""What is published, and what is not."""

import gzip
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analytics.estimation import norm_sub
from protocols.randomness import Keyring
from protocols.scheme import Scheme
from protocols.wire import CONTENT_TYPE_HEADER
from stream_app.counting import Statistics
from stream_app.counting.counters import Counts
from tests.helpers.crowd import counts_of, scheme_of
from tests.helpers.published import Memory, build_histogram
from tests.stream_app.test_merging import Owner, part, progress
from tests.stream_app.worlds import SCHEME, scheme
from views.results import Histogram
from views.view import View, all_views

ATTRIBUTE = "{name: a, values: [x, y, z], mechanism: l-grr}"
TERMS = "eps_inf: 4, eps_1: 3, horizon: 2"
KEYRING = Keyring(bytes(range(16)))
TRUTH = np.repeat([0, 1, 2], [14_000, 5_000, 1_000])


def crowd(scheme: Scheme, people: int = 20_000) -> Counts:
    """People of whom 70, 25 and 5 % have the values; half of them reported with gap 1, half with gap 2."""
    values = TRUTH[:: len(TRUTH) // people]
    N, n = counts_of(scheme, "a", values, np.arange(len(values)) % 2)
    return {"a": Statistics(np.array([1, 2], dtype=np.uint16), n, N)}


def histogram(terms: str = "", people: int = 20_000, period: int = 0) -> Histogram:
    scheme = scheme_of(ATTRIBUTE, f"{TERMS} {terms}")
    return build_histogram("final", scheme, period, crowd(scheme, people))


@pytest.mark.parametrize("mechanism", ["l-geometric", "l-grr"])
@pytest.mark.parametrize("noise", ["", ", presence_epsilon: 5"], ids=["exact counts", "noised counts"])
def test_ordered_mechanisms_publish_a_smoothed_histogram_with_intervals(mechanism: str, noise: str) -> None:
    """All others publish Norm-Sub, and so does every survey whose counts of devices have noise."""
    attribute = f"{{name: a, range: {{first: 1, last: 12}}, mechanism: {mechanism}}}"
    scheme = scheme_of(attribute, f"eps_inf: 1, eps_1: 0.5 {noise}")
    values = np.random.default_rng(8).binomial(11, 0.4, 3000)
    N, n = counts_of(scheme, "a", values, np.zeros(len(values), dtype=np.int64))
    counts = {"a": Statistics(np.array([1], dtype=np.uint16), n, N)}
    result = build_histogram("final", scheme, 0, counts).attribute("a")
    assert result.estimate is not None and result.consistent is not None
    assert sum(result.consistent) == pytest.approx(1)
    truth, nearest = np.bincount(values, minlength=12) / 3000, norm_sub(result.estimate)
    if mechanism == "l-geometric" and not noise:
        assert result.consistent_low is not None and result.consistent_high is not None
        assert ((result.consistent - truth) ** 2).sum() < ((nearest - truth) ** 2).sum() / 3
        assert (result.consistent_low <= truth).all() and (truth <= result.consistent_high).all()
    else:
        assert result.consistent == pytest.approx(nearest, abs=0.001), "but for rounding"
        assert (result.consistent_low, result.consistent_high) == (None, None)


def test_a_result_names_the_relation_of_every_guarantee() -> None:
    published, exact = histogram(", memo_cap: 2").guarantees, scheme_of(ATTRIBUTE, TERMS).guarantees
    assert published.any == {t: exact.any(t) for t in (10, 100)}
    assert published.any_without_cap is None
    assert published.renaming is not None and published.renaming.whole == pytest.approx(8.0)
    assert published.renaming_without_cap == exact.renaming
    relations = {name: loss["relation"] for name, loss in published.model_dump().items() if loss and "relation" in loss}
    assert relations == {
        "per_report": "any",
        "for_ever": "constant",
        "per_additional_value": "renaming",
        "renaming": "renaming",
        "renaming_without_cap": "renaming",
    }


def test_a_result_with_a_cap_of_one_has_both_figures_for_any_two_histories() -> None:
    published, exact = histogram(", memo_cap: 1").guarantees, scheme_of(ATTRIBUTE, TERMS).guarantees
    assert published.any[100].whole == pytest.approx(4.0)
    assert published.any_without_cap == {t: exact.any(t) for t in (10, 100)}


def test_a_period_without_reports_has_a_result_without_estimates() -> None:
    scheme = scheme_of(ATTRIBUTE, TERMS)
    empty = Statistics(np.zeros(0, dtype=np.uint16), np.zeros(0, dtype=np.int64), np.zeros((0, 3), dtype=np.int64))
    result = build_histogram("final", scheme, 0, {"a": empty})
    assert (result.n, result.suppressed, result.attribute("a").estimate) == (0, None, None)


DOCS = Path(__file__).parents[2] / "docs"
SCHEMAS = DOCS / "schemas"


@pytest.mark.parametrize("topic", all_views(), ids=lambda topic: topic.kind)
def test_the_documents_have_the_schema_of_what_is_published(topic: View[Any]) -> None:
    documented = (SCHEMAS / f"{topic.kind}.json").read_text()
    assert documented == topic.json_schema, f"print {topic.kind} with views.view"


def test_every_schema_in_the_documents_belongs_to_a_result_topic_or_a_command() -> None:
    assert {path.stem for path in SCHEMAS.iterdir()} == {topic.kind for topic in all_views()} | {"audit"}


@pytest.mark.parametrize("topic", all_views(), ids=lambda topic: topic.kind)
def test_the_page_on_collecting_names_the_topic_and_content_type_of_every_result(topic: View[Any]) -> None:
    row = rf"^\| `hearsay\.{topic.name}` \|.*\| `{re.escape(topic.content_type)}` \|"
    assert re.search(row, (DOCS / "collecting.md").read_text(), re.MULTILINE)


def test_a_histogram_and_a_mobility_report_of_a_period_agree_on_what_both_contain() -> None:
    few, many = scheme("minimum: 50,"), scheme()
    for terms, suppressed in ((few, "minimum"), (many, None)):
        owner = Owner(partitions=1, lookup={"s": terms}.get)
        flush = owner.take(part(0, 0, 5, 10, closed=True), progress(0, 5, 0))
        published = Memory(flush, terms.survey)
        (histogram,), (report,) = published.histograms("s"), published.mobility("s")
        assert (report.survey, report.fingerprint) == (histogram.survey, histogram.fingerprint)
        assert report.guarantees == histogram.guarantees
        window = report.window(0, 0)
        assert (window.begin, window.end) == (histogram.begin, histogram.end)
        assert window.suppressed == histogram.suppressed == suppressed
        for attribute in window.attributes:
            counted = histogram.attribute(attribute.name)
            assert (attribute.n, attribute.suppressed) == (counted.n, counted.suppressed) == (10, None)


def test_every_result_begins_with_its_schema_version_and_its_header_says_what_it_is() -> None:
    flush = Owner(partitions=1).take(part(0, 0, 5, 10, closed=True), progress(0, 5, 0))
    outputs = {output.topic: output for output in Memory(flush, SCHEME.survey).made}
    made = [topic for topic in all_views() if topic.name != "forecasts"]
    assert set(outputs) == {topic.name for topic in made}
    for topic in made:
        headers = {CONTENT_TYPE_HEADER: topic.content_type.encode(), "content-encoding": b"gzip"}
        assert dict(outputs[topic.name].headers) == headers
        value = gzip.decompress(outputs[topic.name].value)
        without_central = {"histograms": 5, "live": 7, "mobility": 7}  # programs that know no later one read these
        version = without_central.get(topic.name, topic.schema_version)
        assert next(iter(json.loads(value).items())) == ("schema_version", version)
