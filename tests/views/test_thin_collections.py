"""Collections with hardly any answers: everything that is published of them can be read, and every number is one."""

from typing import Any, get_args

import numpy as np
import pytest
from pydantic import BaseModel

from tests.helpers.thin import KINDS, SIZES, WAYS, ThinCollection, check_published, scheme_of
from views.view import all_views

COLLECTIONS = 1000
PARTS = 20
QUICK = ("threshold, two rounds", "threshold of 7", "set", "dwell", "transition", "grr, rs+fd")
QUICK_WAYS = ("one_in of thresholds", "presence of thresholds", "cross", "units")


def with_every_size(kind: str) -> None:
    """A survey of a kind, with a period of each size."""
    random = np.random.default_rng(len(kind))
    sizes = random.permutation(SIZES).tolist()
    collection = ThinCollection(scheme_of(kind), [*sizes, 0], seed=1)
    assert check_published(collection.published(), collection.scheme.survey)


@pytest.mark.parametrize("kind", [*QUICK, *QUICK_WAYS])
def test_thin_periods_are_published_and_read(kind: str) -> None:
    with_every_size(kind)


@pytest.mark.long(part="statistics")
@pytest.mark.parametrize("reports", [3, 40])
def test_thin_periods_are_forecast(reports: int) -> None:
    """Some thresholds have no answers in some periods, so their shares are not known there."""
    collection = ThinCollection(scheme_of("forecast"), [reports] * 52, seed=1)
    published = collection.published()
    assert check_published(published, collection.scheme.survey) == 52
    assert published.forecasts(collection.scheme.survey.id)


@pytest.mark.long(part="statistics")
@pytest.mark.parametrize("kind", KINDS)
def test_thin_periods_of_every_role_mechanism_and_way_to_ask_are_published_and_read(kind: str) -> None:
    with_every_size(kind)


@pytest.mark.long(part="statistics")
@pytest.mark.parametrize("part", range(PARTS))
def test_thin_collections_at_random_are_published_and_read(part: int) -> None:
    random, kinds = np.random.default_rng(part), [*KINDS]
    read = 0
    for seed in range(COLLECTIONS // PARTS):
        kind = str(random.choice(kinds))
        periods = 2 if seed % 4 == 0 else 1  # with two each, all collections would take 90 CPU seconds, and not 54
        reports = random.choice(SIZES, periods).tolist()
        collection = ThinCollection(scheme_of(kind), reports, seed)
        read += check_published(collection.published(), collection.scheme.survey)
    assert read > COLLECTIONS // PARTS // 2, "hardly anything was published, so nothing was tried"


def test_every_kind_that_decides_what_is_published_is_tried() -> None:
    roles = {attribute.get("role") for terms in KINDS.values() for attribute in terms["attributes"]}
    assert {"area", "dwell", "amount", "transition"} <= roles
    assert {name for terms in WAYS.values() for name in terms} >= {"crosses", "one_in", "minimum", "presence_epsilon"}


def models_of(model: type[BaseModel]) -> set[type[BaseModel]]:
    """A model, and those that its fields hold."""
    found = {model}
    waiting: list[Any] = [field.annotation for field in model.model_fields.values()]
    while waiting:
        kind = waiting.pop()
        waiting += get_args(kind)
        if isinstance(kind, type) and issubclass(kind, BaseModel) and kind not in found:
            found.add(kind)
            waiting += [field.annotation for field in kind.model_fields.values()]
    return found


@pytest.mark.parametrize("view", all_views(), ids=lambda view: view.name)
def test_no_model_of_a_result_takes_nan_or_infinity(view: Any) -> None:
    lenient = [model for model in models_of(view.model) if model.model_config.get("allow_inf_nan", True)]
    assert not lenient, lenient
