"""Pieces of work on the store that go on side by side, so that what they ask of Redis travels together."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from itertools import islice
from typing import Any, TypeVar

from memo_store.connection.epochs import Call, Epochs
from memo_store.connection.link import Command

T = TypeVar("T")
Asked = Sequence[Command] | Sequence[Call]
Steps = Generator[Asked, list[Any], T]
"""Work in steps: each yields commands that read, or guarded scripts, and is sent their answers."""


def together(epochs: Epochs, works: Sequence[Steps[T]]) -> list[T]:
    """Do pieces of work, and return their results. In each turn, reads are one batch, and guarded scripts another one.

    Raises `EpochLost`.
    """
    done: dict[int, T] = {}
    answers: dict[int, Any] = dict.fromkeys(range(len(works)))
    while answers:
        reads: dict[int, Asked] = {}
        calls: dict[int, Asked] = {}
        for place, answer in answers.items():
            try:
                asked = works[place].send(answer)
            except StopIteration as end:
                done[place] = end.value
            else:
                (calls if asked and isinstance(asked[0], Call) else reads)[place] = asked
        answers = _answers(epochs.link.run, reads) | _answers(epochs.run, calls)
    return [done[place] for place in range(len(works))]


def _answers(run: Callable[[Any], list[Any]], asked: Mapping[int, Asked]) -> dict[int, list[Any]]:
    answers = iter(run([request for requests in asked.values() for request in requests]) if asked else [])
    return {place: list(islice(answers, len(requests))) for place, requests in asked.items()}
