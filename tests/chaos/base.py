"""What every ordeal on a broker has: a cluster to use, a directory, a seed, and workers that are killed."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from random import Random

import numpy as np

from bench._processes import WorkerProcess
from tests.helpers.counting import Counting


class KafkaOrdeal(ABC):
    """Faults while something is counted on topics of its own. The same seed brings the same faults."""

    def __init__(self, counting: Counting, seed: int, say: Callable[[str], None] = print) -> None:
        self._counting = counting
        self._topics = counting.topics
        self._random = Random(seed)
        self._draws = np.random.default_rng(seed)
        self._say = say

    @abstractmethod
    def run(self, faults: int) -> None:
        """Bring so many faults, and fail unless everything was counted once."""

    def _kill(self, worker: WorkerProcess, what: str) -> None:
        """End a worker as a crash would, and start it again."""
        self._say(f"kill -9 of a worker {what}")
        worker.kill()
        worker.start()
