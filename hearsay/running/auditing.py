"""An audit of a survey: computed, and measured with devices of its own."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from audit.computed import Priors, computed, findings
from audit.limits import breaches, parse_limits
from audit.report import Attack, Attacker, AuditReport, Figure, Finding
from protocols.errors import SettingsError
from protocols.planning import DEVICES
from protocols.scheme import Scheme
from protocols.survey import Survey


@dataclass(frozen=True)
class Auditing:
    """What is audited, and how. `prior` is even, published, or a file of shares by attribute and value."""

    survey: Survey
    crowd: int | None
    only: Collection[Attack]
    attacker: Attacker
    prior: str
    alpha: float
    seed: int
    fail_above: str

    @cached_property
    def scheme(self) -> Scheme:
        return Scheme(self.survey)

    def computed(self) -> AuditReport:
        """The closed forms alone."""
        limits = parse_limits(self.fail_above)
        figures = computed(self.scheme, self.devices, self.only, self.attacker, self.priors())
        return self.report(figures, findings(self.scheme, self.devices)).model_copy(
            update={"breaches": breaches(figures, limits)}
        )

    @property
    def devices(self) -> int:
        return self.crowd or self.survey.devices or DEVICES

    def priors(self) -> Priors:
        """The shares that the attacker knows; empty: all values are alike."""
        if self.prior == "even":
            return {}
        if self.prior == "published":
            known = {a.name: np.array(list(a.prior.values())) for a in self.survey.attributes if a.prior is not None}
            if not known:
                raise SettingsError(
                    "--prior published: nothing is published, and the survey has no priors",
                    "measure devices (--devices), or give a file of shares",
                )
            return known
        return read_shares(Path(self.prior), self.survey)

    def report(self, figures: list[Figure], found: list[Finding]) -> AuditReport:
        return AuditReport(
            survey=self.survey.id,
            fingerprint=self.scheme.fingerprint,
            solution=self.survey.solution,
            mechanisms={question.name: question.label for question in self.scheme.questions},
            crowd=self.devices,
            attacker=self.attacker,
            alpha=self.alpha,
            seed=self.seed,
            figures=tuple(figures),
            findings=tuple(found),
        )


def read_shares(path: Path, survey: Survey) -> Priors:
    """Shares from a JSON file {attribute: {value: share}}, of all values of some attributes."""
    hint = 'write {"attribute": {"value": 0.5, "other": 0.5}}, with all values; shares sum to 1'
    try:
        given = json.loads(path.read_text("utf-8"))
        values = {name: survey.attribute(name).values for name in given}
        shares = {name: np.array([given[name][value] for value in values[name]], dtype=float) for name in given}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise SettingsError(f"{path} cannot be read as shares: {type(error).__name__}: {error}", hint) from None
    for name, row in shares.items():
        if (row < 0).any() or abs(row.sum() - 1) > 1e-6:
            raise SettingsError(f"{path}: the shares of {name!r} are not a distribution", hint)
    return shares
