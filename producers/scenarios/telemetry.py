"""`telemetry`: values change now and then."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from producers.scenarios.base import Presences, check_size, randomness
from protocols.arrays import Floats
from protocols.survey import NOTHING

Distribution = Sequence[str] | Mapping[str, float]
"""The values of an attribute: names alone (with weights by Zipf's law, the first is the commonest), or with weights."""

DEFAULT_ATTRIBUTES: dict[str, Distribution] = {
    "feature": tuple(f"feature {i}" for i in range(1, 11)),
    "version": {"stable": 0.8, "previous": 0.15, "beta": 0.05},
}


def zipf(k: int) -> Floats:
    """Weights that fall as 1/rank, as counts of apps, words and web pages do.

    >>> zipf(3).round(3).tolist()
    [0.545, 0.273, 0.182]
    """
    weights = 1 / np.arange(1, k + 1, dtype=np.float64)
    return np.asarray(weights / weights.sum())


State = dict[str, NDArray[np.unsignedinteger]]
"""The values of all devices in one period. The arrays are not modified once they are made."""


class Telemetry:
    """Devices whose values are drawn from fixed distributions and redrawn now and then.

    attributes  attribute name -> its values' names (Zipf weights) or its values with weights
    change      probability per period that an attribute's value is drawn again (the new one may equal the old one, so
                the distribution does not change)
    presence    probability per period that a device is present
    several     attribute name -> how many slots a device has for values of it, for attributes of sets: half of them are
                empty, and a set is what is in the others

    The state of period p follows from that of p-1, with randomness of (seed, p) alone. The last state is kept: the next
    period costs one step, an earlier one all steps from the start. A state has a small integer per attribute for each
    device.

    >>> truth = Telemetry(devices=1000, periods=3, seed=1, attributes={"plan": {"free": 3, "paid": 1}}, presence=0.5)
    >>> day = truth.presences(2)
    >>> 0.4 < len(day.devices) / 1000 < 0.6, 0.65 < np.mean(day.values["plan"] == 0) < 0.85
    (True, np.True_)
    """

    name = "telemetry"

    def __init__(
        self,
        devices: int = 10_000,
        periods: int = 30,
        seed: int = 0,
        *,
        attributes: Mapping[str, Distribution] | None = None,
        change: float = 0.05,
        presence: float = 0.9,
        several: Mapping[str, int] | None = None,
    ) -> None:
        check_size(devices, periods)
        chosen = DEFAULT_ATTRIBUTES if attributes is None else attributes
        self.devices, self.periods, self.seed = devices, periods, seed
        self.change, self.presence = change, presence
        self.attributes = {name: tuple(values) for name, values in chosen.items()}
        self._several = several or {}
        self._cumulative = {name: _law(values, name in self._several) for name, values in chosen.items()}
        self._last = 0, self._start()

    def presences(self, period: int) -> Presences:
        """Which devices are present in this period, with which values."""
        # It is read once and replaced at once: two threads may compute the same periods, but never mix two states.
        at, state = self._last
        if at > period:
            at, state = 0, self._start()
        while at < period:
            at, state = at + 1, self._step(at + 1, state)
        self._last = at, state
        present = randomness(self.seed, "presence", period).random(self.devices, dtype=np.float32) < self.presence
        devices = np.flatnonzero(present)
        slots = {name: column.take(devices, axis=0).astype(np.int64) for name, column in state.items()}
        values = {name: column[:, 0] for name, column in slots.items()}
        for name in self._several:
            values[name] = np.where(slots[name] == len(self.attributes[name]), NOTHING, slots[name])
        return Presences(period, devices.astype(np.uint64), values)

    def _start(self) -> State:
        rng = randomness(self.seed, "start")
        return {name: self._draw(rng, name, (self.devices, self._several.get(name, 1))) for name in self.attributes}

    def _step(self, period: int, before: State) -> State:
        rng = randomness(self.seed, "step", period)
        values = {}
        for name, column in before.items():
            changing = rng.random(column.shape, dtype=np.float32) < self.change
            values[name] = column.copy()
            values[name][changing] = self._draw(rng, name, (int(np.count_nonzero(changing)),))
        return values

    def _draw(self, rng: np.random.Generator, name: str, shape: tuple[int, ...]) -> NDArray[np.unsignedinteger]:
        cumulative = self._cumulative[name]
        kind = np.min_scalar_type(len(cumulative))
        return np.searchsorted(cumulative[:-1], rng.random(shape), side="right").astype(kind)


def _law(values: Distribution, in_slots: bool) -> Floats:
    """The probability of each value, or of what is in a slot of a set, the last entry for nothing; summed up."""
    shares = zipf(len(values))
    if isinstance(values, Mapping):
        weights = np.array(list(values.values()), dtype=np.float64)
        shares = weights / weights.sum()
    return np.cumsum(np.append(shares, 1.0) / 2 if in_slots else shares)
