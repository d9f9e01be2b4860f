"""What every ordeal on a broker has: a cluster to use, a directory and a seed."""

from collections.abc import Callable
from random import Random

import numpy as np

from tests.helpers.counting import Counting


class KafkaOrdeal:
    """Faults while something is counted on topics of its own. The same seed brings the same faults."""

    def __init__(self, counting: Counting, seed: int, say: Callable[[str], None] = print) -> None:
        self._counting = counting
        self._topics = counting.topics
        self._random = Random(seed)
        self._draws = np.random.default_rng(seed)
        self._say = say

    def run(self, faults: int) -> None:
        """Bring so many faults, and fail unless everything was counted once."""
        raise NotImplementedError
