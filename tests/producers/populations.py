"""Small worlds for tests of fleets."""

from pathlib import Path

import numpy as np

from lab.seeded_keyrings import seeded_keyring
from producers.scenarios.base import Presences
from protocols.scheme import Scheme
from protocols.survey_text import parse_survey
from tests.helpers.sinks import KeepingSink
from views.local import collector
from views.reading import Results

KEYRING = seeded_keyring(8)
CLOCK_KEY = b"the operator's own key"

COLOURS = ("red", "green", "blue", "black")
PLANS = ("free", "paid")


def scheme(extra: str = "", budgets: str = "eps_inf: 2, eps_1: 1, clock: source", mechanism: str = "auto") -> Scheme:
    """Two attributes, days, a week of unique visitors."""
    return Scheme(
        parse_survey(
            f"{{id: buttons, start: 2026-01-01T00:00:00Z, period: 1d, horizon: 7, {budgets}, {extra} "
            f"attributes: [{{name: colour, mechanism: {mechanism}, values: [{', '.join(COLOURS)}]}}, "
            f"{{name: plan, values: [{', '.join(PLANS)}]}}]}}"
        )
    )


class Alternating:
    """Device i is there in every period but each (i % 3 + 2)-th, and its values move on slowly."""

    name = "alternating"
    attributes = {"colour": COLOURS, "plan": PLANS}  # noqa: RUF012

    def __init__(self, devices: int = 1000, periods: int = 5) -> None:
        self.devices, self.periods = devices, periods

    def presences(self, period: int) -> Presences:
        everyone = np.arange(self.devices)
        there = everyone[(period + everyone) % (everyone % 3 + 2) != 0]
        values = {"colour": (there + period // 2) % len(COLOURS), "plan": there % len(PLANS)}
        return Presences(period, there.astype(np.uint64), values)

    def gap(self, device: int, period: int, horizon: int) -> int:
        """Periods since this device was last there, by looking."""
        before = [p for p in range(period) if device in self.presences(p).devices]
        return min(horizon, period - before[-1]) if before else horizon


def counted(sink: KeepingSink, survey: Scheme, directory: Path) -> list[int]:
    """How many reports the stream app counts in each closed period of what a sink was given."""
    with collector(directory, [survey.survey], CLOCK_KEY, bytes(32), partitions=sink.partitions) as app:
        for record in sink.records:
            app.send(*record)
        app.flush()
        return [final.n for final in Results(app.store).histograms(survey.survey.id)]
