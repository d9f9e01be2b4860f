"""The attack that memos exist for: whoever links three hundred reports of a device still sees its memo at best."""

from __future__ import annotations

from math import inf, sqrt

import numpy as np
import pytest
from numpy.typing import NDArray

from lab.audit.closed.guessing import guess
from memo_store.store import MemoStore
from tests.memo_store.surveys import devices, respondent

PERIODS, DEVICES, K = 300, 1000, 10


def most_frequent(answers: list[NDArray[np.uint8]]) -> NDArray[np.intp]:
    counts = np.zeros((DEVICES, K), dtype=np.int64)
    for answer in answers:
        counts[np.arange(DEVICES), answer] += 1
    return counts.argmax(axis=1)


def test_averaging_three_hundred_reports_finds_the_memo_and_not_the_value(hasty_redis_url: str) -> None:
    people, everyone = respondent(k=K), devices(DEVICES)
    question = people.scheme.questions[0]
    truth = np.arange(DEVICES) % K

    linked, fresh = [], []
    with MemoStore(hasty_redis_url) as store:
        memos = store.survey(people)
        for period in range(PERIODS):
            memo = memos.lookup(question, everyone, truth, period)
            linked.append(people.report(question, everyone, period, memo))
            redrawn = question.mechanism.memoise(truth, people.keyring.draws(("no memo",), everyone, period))
            fresh.append(people.report(question, everyone, period, redrawn))

    best = guess(question, inf, memoised=True)  # three hundred reports are as good as all there will ever be
    assert best is not None
    recovered = np.mean(most_frequent(linked) == truth)
    assert recovered == pytest.approx(best, abs=3 * sqrt(best * (1 - best) / DEVICES))
    assert np.mean(most_frequent(fresh) == truth) > 0.99, "without a memo the same attack must succeed"
    assert np.mean(most_frequent(linked) == people.memoise(question, everyone, truth)) > 0.99, "nor is it too weak"
