"""Topics are created with the required configuration, and every difference from it is explained."""

from collections.abc import Callable, Iterator

import pytest
from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType

from protocols.errors import TopicError
from servers.settings import KafkaSettings
from stream_app.kafka import Topics, check, create, existing
from stream_app.log.flushes import RESULTS
from tests.helpers.eventually import eventually
from views.results import HISTOGRAMS, LIVE

FreshTopics = Callable[..., Topics]


@pytest.fixture
def admin(kafka_settings: KafkaSettings) -> Iterator[KafkaAdminClient]:
    client = KafkaAdminClient(**kafka_settings.client_options())
    yield client
    client.close()


def alter(admin: KafkaAdminClient, topic: str, setting: str, value: str) -> None:
    admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, {setting: value})])
    look = [ConfigResource(ConfigResourceType.TOPIC, topic, [setting])]
    eventually(lambda: admin.describe_configs(look, config_filter="all")["topic"][topic][setting]["value"] == value)


def test_what_is_counted_and_what_stays_is_not_compacted_and_changelogs_never_expire() -> None:
    topics = Topics()
    made = {topic.name: (topic.policy, topic.retention_ms) for topic in topics.all()}
    stays, replaced = ("delete", -1), ("compact,delete", 7 * 24 * 60 * 60 * 1000)
    assert made[topics.reports][0] == made[topics.partials][0] == "delete"
    assert made[topics.counting_changelog] == made[topics.merging_changelog] == ("compact", -1)
    assert (made[topics.finals], made[topics.open]) == (stays, replaced)
    assert {row.name: made[topics.named(row.name)] for row in RESULTS} == {
        row.name: replaced if row.replaced else stays for row in RESULTS
    }


def test_missing_topics_are_named_and_only_they_are_created(
    kafka_settings: KafkaSettings, admin: KafkaAdminClient, fresh_topics: FreshTopics
) -> None:
    topics = fresh_topics(partitions=1, merge_partitions=1)
    admin.delete_topics([topics.named(LIVE.name)])
    eventually(lambda: topics.named(LIVE.name) not in admin.list_topics())
    assert [str(mismatch) for mismatch in check(kafka_settings, topics)] == [
        f"{topics.named(LIVE.name)}: the topic is missing and must be present: run `hearsay topics create`"
    ]
    assert create(kafka_settings, topics) == [topics.named(LIVE.name)]


CHANGED = [
    ("reports", "cleanup.policy", "compact", "consecutive offsets"),
    ("partials", "cleanup.policy", "compact,delete", "consecutive offsets"),
    ("reports", "retention.ms", "3600000", "deleted before they are needed"),
    ("histograms", "retention.ms", "31536000000", "deleted before they are needed"),
    ("reports", "max.message.bytes", "1000000", "broker would refuse"),
    ("counting_changelog", "cleanup.policy", "delete", "must never expire"),
    ("counting_changelog", "min.compaction.lag.ms", "0", "before a crash"),
]


GENEROUS = [("partials", "retention.ms", "-1"), ("partials", "max.message.bytes", "20000000")]


def test_changed_settings_are_explained_and_more_generous_ones_are_no_mismatch(
    kafka_settings: KafkaSettings, admin: KafkaAdminClient, fresh_topics: FreshTopics
) -> None:
    topics, expected = fresh_topics(partitions=1, merge_partitions=1), {}
    for topic, setting, value, because in CHANGED:
        name = topics.named(HISTOGRAMS.name) if topic == "histograms" else getattr(topics, topic)
        alter(admin, name, setting, value)
        expected[name, setting] = value, because
    for topic, setting, value in GENEROUS:
        alter(admin, getattr(topics, topic), setting, value)
    found = {(one.topic, one.setting): one for one in check(kafka_settings, topics)}
    assert found.keys() == expected.keys()
    for place, (value, because) in expected.items():
        assert found[place].found == value and because in found[place].why


def test_another_number_of_partitions_is_found_and_explained(
    kafka_settings: KafkaSettings, fresh_topics: FreshTopics
) -> None:
    made = fresh_topics(partitions=3, merge_partitions=2)
    assert existing(kafka_settings, made.prefix) == made
    mismatches = check(kafka_settings, Topics(made.prefix, partitions=4, merge_partitions=2))
    assert [(mismatch.topic, mismatch.found, mismatch.wanted) for mismatch in mismatches] == [
        (made.reports, "3", "4"),
        (made.counting_changelog, "3", "4"),
    ]


def test_the_error_about_topics_that_do_not_exist_says_what_to_run(kafka_settings: KafkaSettings) -> None:
    with pytest.raises(TopicError) as caught:
        existing(kafka_settings, "never-made")
    assert "hearsay topics create --prefix never-made" in caught.value.hint
