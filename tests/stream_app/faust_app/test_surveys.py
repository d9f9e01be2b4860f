"""Which records of the survey registry a worker takes."""

from __future__ import annotations

from typing import Any, cast

import pytest
from aiokafka import ConsumerRecord

from protocols.scheme import Scheme
from servers.settings import KafkaSettings
from stream_app.faust_app.broker.surveys import Surveys
from tests.helpers.another_release import never_choose
from tests.helpers.surveys import of_size, scheme_with
from tests.stream_app.worlds import SCHEME, scheme


def registry(*published: Scheme, header: str = "fingerprint") -> Surveys:
    """A worker's surveys after it has read these records."""
    surveys = Surveys(KafkaSettings(bootstrap="127.0.0.1:1"), "surveys", cast(Any, None))
    for offset, each in enumerate(published):
        value, headers = each.survey.model_dump_json().encode(), ((header, each.fingerprint.encode()),)
        surveys.register(ConsumerRecord("surveys", 0, offset, 0, 0, b"s", value, None, 1, len(value), headers))
    return surveys


def found(surveys: Surveys) -> Scheme:
    known = surveys.lookup("s")
    assert known is not None
    return known


def test_texts_of_a_survey_follow_its_last_record_and_terms_stay_those_of_the_first() -> None:
    titled = scheme("title: Another title,")
    assert found(registry(SCHEME, titled)).survey.title == "Another title"
    assert found(registry(SCHEME, scheme("minimum: 5,"))).fingerprint == SCHEME.fingerprint


def test_a_worker_does_not_count_a_survey_that_it_resolves_to_other_terms(monkeypatch: pytest.MonkeyPatch) -> None:
    """Failure would look like: a worker of another release that estimates from other noise than devices have."""
    published = scheme_with(of_size(3), id="s", eps_inf=2, eps_1=1)
    assert found(registry(published)).fingerprint == published.fingerprint
    never_choose(monkeypatch, published.questions[0].label)
    assert "s" not in registry(published)


def test_a_record_without_a_fingerprint_is_skipped() -> None:
    assert "s" not in registry(SCHEME, header="another")
