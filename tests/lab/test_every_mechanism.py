"""Every mechanism under every solution: all attacks are carried out, and nothing contradicts what is computed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from audit.report import ATTACKS
from lab.attacks.coins import experiments
from lab.attacks.trials import defects
from lab.auditing.population import Population
from protocols.mechanisms import Use, fitting
from tests.audit.test_closed_forms import USES
from tests.helpers.surveys import of_size, scheme_with
from tests.lab.observing import observe, tossed, with_coins

DEVICES, PERIODS, ALPHA = 600, 3, 0.001


@pytest.mark.long(part="statistics")
@pytest.mark.parametrize("use", USES)
def test_every_mechanism_is_attacked_without_contradiction(use: Use) -> None:
    values = {name: np.tile(np.random.default_rng(1).integers(3, size=DEVICES), (PERIODS, 1)) for name in "ab"}
    for solution in ("smp", "spl") if not use.startswith("rs") else (use,):
        for record in fitting(use):
            extra: dict[str, Any] = {"prior": [0.5, 0.3, 0.2]} if use == "rs+rfd" else {}
            attributes = [of_size(3, name, mechanism=record.name, **extra) for name in "ab"]
            scheme = scheme_with(*attributes, **{**USES[use], "solution": solution})
            seen = Population(scheme, ATTACKS, None, ALPHA, "published")
            seen.add(observe(scheme, values))
            figures = seen.figures()
            for number, experiment in enumerate(experiments(scheme, PERIODS)):
                shown = tossed(DEVICES, number)
                experiment.add(with_coins(scheme, experiment.coins, shown, PERIODS), shown)
                figures += experiment.figures(ALPHA / 2)
            assert defects(figures, ALPHA) == [], record.name
