"""Collections with hardly any answers, through a real broker and a worker: all that is published can be read."""

import numpy as np
import pytest

from stream_app.log.flushes import FINALS
from tests.helpers.counting import NewCounting
from tests.helpers.eventually import eventually
from tests.helpers.published import Kept
from tests.helpers.thin import KINDS, SIZES, ThinCollection, check_published, scheme_of
from views.reading import Results
from views.results import HISTOGRAMS
from views.view import all_views

COLLECTIONS = 30
SECONDS = 180.0
"""How long the worker may take to publish all of them."""


def thin_collections() -> list[ThinCollection]:
    """Each is of another survey; those that ask by thresholds are all among them."""
    random = np.random.default_rng(30)
    by_thresholds = [kind for kind in KINDS if "threshold" in kind]
    others = [kind for kind in KINDS if "threshold" not in kind]
    drawn = random.permutation(others)[: COLLECTIONS - len(by_thresholds)].tolist()
    return [
        ThinCollection(scheme_of(kind), random.permutation(SIZES).tolist(), seed)
        for seed, kind in enumerate([*by_thresholds, *drawn])
    ]


@pytest.mark.long(part="cluster")
def test_thin_collections_are_published_and_read_through_a_broker(new_counting: NewCounting) -> None:
    collections = thin_collections()
    surveys = [collection.scheme.survey for collection in collections]
    counting = new_counting(*(collection.scheme for collection in collections), partitions=1, merge_partitions=1)
    expected = sum(len(collection.published().finals()) for collection in collections)
    with counting.workers() as (worker,):
        for collection in collections:
            counting.put((0, content_type, value) for content_type, value in collection.records)
        eventually(lambda: len(counting.results.values(HISTOGRAMS)) == expected, SECONDS)
        refused = worker.metric("hearsay_refused_results_total")
        log = worker.log.read_text()
    assert refused == 0 and "Warning" not in log and '"level": "error"' not in log
    held = Kept(surveys)
    for name in (FINALS, *(view.name for view in all_views())):
        held.kept += counting.results.store.messages(name)
    assert len(collections) == COLLECTIONS
    assert sum(check_published(Results(held), survey) for survey in surveys) == expected
