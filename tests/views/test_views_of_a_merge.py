"""Views of what the merge publishes."""

import gzip
import json

from protocols.wire import CONTENT_TYPE_HEADER
from tests.helpers.published import Memory
from tests.stream_app.merges import Owner, part, progress
from tests.stream_app.worlds import SCHEME, scheme
from views.view import all_views


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
        version = topic.schema_version - (topic.name in ("histograms", "live"))  # the newest only has central more
        assert next(iter(json.loads(value).items())) == ("schema_version", version)
