"""The live page of results on a Kafka cluster, in a real browser."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from kafka import KafkaProducer
from playwright.sync_api import Browser, Page, expect

from hearsay.reports.serving import Published
from pages.dashboard import Source
from protocols.survey import Survey
from servers.kafka_broker import KafkaBroker
from servers.settings import KafkaSettings
from stream_app.kafka import KafkaMessages, TopicFollower, Topics, publish
from tests.helpers.browser import open_browser
from tests.helpers.collecting import Collection, collecting, small_survey
from tests.helpers.dashboards import Viewer, dashboard
from tests.helpers.eventually import eventually
from tests.helpers.tabs import tab
from views.reading import Results


@dataclass
class Cluster:
    """The result topics of a cluster, written as a worker writes them: by publishing what a collection publishes."""

    kafka: KafkaSettings
    topics: Topics
    producer: KafkaProducer
    published: dict[int, int] = field(default_factory=dict)

    def publish(self, collection: Collection) -> None:
        """Publish what is new in a collection."""
        after = self.published.get(id(collection), 0)
        for number, message in collection.published(after):
            headers = list(message.headers)
            self.producer.send(self.topics.named(message.topic), message.value, message.key, headers, partition=0)
            self.published[id(collection)] = number
        self.producer.flush(30)

    def source(self) -> Source:
        """As `hearsay dashboard --kafka` has it."""
        published = Published([], None, self.kafka.bootstrap)
        return Source(published.follow, (), published.describe)

    @property
    def results(self) -> KafkaMessages:
        return Results(KafkaMessages(self.kafka, self.topics))


@pytest.fixture
def cluster(
    kafka_settings: KafkaSettings, fresh_topics: Callable[..., Topics], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Cluster]:
    producer = KafkaProducer(**kafka_settings.client_options(), acks="all", enable_idempotence=True)
    topics = fresh_topics(partitions=2, merge_partitions=1)
    monkeypatch.setenv("HEARSAY_KAFKA_PREFIX", topics.prefix)
    yield Cluster(kafka_settings, topics, producer)
    producer.close()


@pytest.fixture
def collect(cluster: Cluster, tmp_path: Path) -> Iterator[Callable[[Survey], Collection]]:
    """Begin to collect a survey, which is published."""
    with ExitStack() as open_collections:

        def begin(survey: Survey) -> Collection:
            publish(cluster.kafka, cluster.topics, survey)
            (collection,) = open_collections.enter_context(collecting(tmp_path / survey.id, survey))
            return collection

        yield begin


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as found:
        yield found


def rows(page: Page, chart: str = "over-time") -> list[list[str]]:
    """The table behind a chart, as it is now: a page is built again whenever a stream brings something new to show."""
    page.locator(f"#{chart}").scroll_into_view_if_needed()
    button = page.locator(f"#{chart} [data-see=table]")
    if button.get_attribute("aria-pressed") == "false":
        button.click()
    found: list[list[str]] = page.locator(f"#{chart} tr").evaluate_all(
        "found => found.map(row => [...row.cells].map(cell => cell.textContent))"
    )
    return found


def column(page: Page, name: str) -> list[str]:
    head, *found = rows(page) or [[name]]
    return [row[head.index(name)] for row in found]


def wait_for(page: Page, **columns: list[str]) -> None:
    """Return when the table of devices over time has these columns."""
    eventually(lambda: all(column(page, name) == shown for name, shown in columns.items()))


def test_tables_show_what_is_on_the_topics_and_provisional_becomes_final_in_place(
    cluster: Cluster, collect: Callable[[Survey], Collection], browser: Browser
) -> None:
    colours = collect(small_survey())
    for period, answers in enumerate(([30, 20, 10], [33, 22, 11], [3, 2, 1])):
        colours.report(period, answers)
        colours.close(period)
    colours.report(3, [40, 0, 0])
    cluster.publish(colours)
    with dashboard(cluster.source()) as running, tab(browser) as (page, asked):
        page.goto(f"{running.address}?survey=colours")
        expect(page.locator("body")).to_have_attribute("data-drawn", "yes")
        wait_for(page, devices=["60", "66", "–", "40"], state=["final", "final", "suppressed", "provisional"])
        reports = cluster.results.mobility("colours")
        for period, report in enumerate(reports):
            one = report.window(period, period)
            for name, quantity in (("devices", one.visitors), ("new", one.new), ("returning", one.returning)):
                shown = "–" if quantity is None or quantity.value is None else f"{quantity.value:.0f}"
                assert column(page, name)[period] == shown
        colours.report(3, [0, 25, 0])
        cluster.publish(colours)
        wait_for(page, devices=["60", "66", "–", "60"], state=["final", "final", "suppressed", "provisional"])
        colours.close(3)
        cluster.publish(colours)
        wait_for(page, devices=["60", "66", "–", "65"], state=["final", "final", "suppressed", "final"])
        origins = {urlsplit(url)._replace(path="", query="", fragment="").geturl() for url in asked}
        assert {origin for origin in origins if not origin.startswith("data:")} == {running.address.rstrip("/")}
        assert len([url for url in asked if "/events" in url]) == 1, "one stream for a page"


@pytest.mark.long(part="cluster")
def test_a_page_says_that_the_broker_is_gone_and_goes_on_when_it_is_back_without_loss_or_repetition(
    kafka: KafkaBroker, cluster: Cluster, collect: Callable[[Survey], Collection], browser: Browser
) -> None:
    """Failure would look like: a period that is missing, or an event that a viewer is sent twice."""
    colours = collect(small_survey())
    colours.report(0, [30, 20, 10])
    colours.close(0)
    cluster.publish(colours)
    with dashboard(cluster.source()) as running, tab(browser) as (page, _):
        viewer = Viewer(running, "colours")
        viewer.view(lambda one: "mobility/colours/0" in one.state)
        page.goto(f"{running.address}?survey=colours")
        expect(page.locator("body")).to_have_attribute("data-drawn", "yes")
        trouble = page.locator(".live").get_by_text("Results cannot be read now")
        expect(trouble).to_have_count(0)
        wait_for(page, devices=["60"])
        kafka.kill()
        try:
            expect(trouble).to_be_visible()
            assert column(page, "devices") == ["60"], "what is shown stays"
        finally:
            kafka.start()
        for period, answers in ((1, [20, 20, 20]), (2, [30, 30, 30])):
            colours.report(period, answers)
            colours.close(period)
        cluster.publish(colours)
        wait_for(page, devices=["60", "60", "90"])
        expect(trouble).to_have_count(0)
        viewer.view(lambda one: "mobility/colours/2" in one.state)
        finals = sorted(key for _, key in viewer.received if key.startswith("mobility"))
        assert finals == [f"mobility/colours/{period}" for period in range(3)]
        assert viewer.resets <= 1, "one at the beginning"


def test_a_page_asks_for_the_token_once(
    cluster: Cluster, collect: Callable[[Survey], Collection], browser: Browser
) -> None:
    colours = collect(small_survey())
    colours.report(0, [30, 20, 10])
    colours.close(0)
    cluster.publish(colours)
    with dashboard(cluster.source(), token="a token that nobody guesses") as running, tab(browser) as (page, _):
        page.goto(f"{running.address}?survey=colours")
        page.get_by_label("Token").fill("a token that nobody guesses")
        page.get_by_role("button").click()
        expect(page.locator("tr[data-survey=colours]")).to_be_visible()
        assert page.evaluate("document.cookie") == "", "scripts do not see it"
        page.goto(f"{running.address}?survey=colours")
        expect(page.locator("body")).to_have_attribute("data-drawn", "yes")


def test_the_lag_is_what_workers_have_not_counted(cluster: Cluster) -> None:
    with closing(TopicFollower(cluster.kafka, cluster.topics)) as follower:
        eventually(lambda: follower.lag() == 0)  # not before the cluster knows about groups
        for partition in (0, 0, 1):
            cluster.producer.send(cluster.topics.reports, b"x", partition=partition)
        cluster.producer.flush(30)
        eventually(lambda: follower.lag() == 3)
