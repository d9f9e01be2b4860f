"""What `presence_epsilon` costs: the noise on counts, and the errors of what is computed from them (PROTOCOLS 7)."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, hypot, sqrt

from protocols.planning.precision import PlanModel, PrecisionPlan
from protocols.privacy.presence import geometric_variance, share_variance
from protocols.scheme import Scheme

USELESS = 0.5 / 1.96  # a standard error whose 95 % interval is as wide as everything a share can be


class PresenceErrors(PlanModel):
    """Standard errors of a share of one attribute, as for exact counts but with the noise on counts.

    `largest` is how many values a report may support, `scale` that of the noise on the supports of each value.
    """

    largest: int
    scale: float
    if_nobody: float
    if_half: float
    devices_needed: int

    @property
    def useless(self) -> bool:
        """Whether an interval of 95 % is as wide as everything a share can be."""
        return self.if_half >= USELESS


class PresencePlan(PlanModel):
    """How `presence_epsilon` is divided between reports by gap and supports, and what results from it.

    `scale` is that of the noise on reports by gap, `visitors` the standard error of the visitors of a period.
    """

    epsilon: float
    reports_epsilon: float
    supports_epsilon: float
    scale: float
    visitors: float
    attributes: dict[str, PresenceErrors]


def presence_plan(scheme: Scheme, precisions: Mapping[str, PrecisionPlan], error: float) -> PresencePlan | None:
    """The plan of a survey's noise on counts, for a wanted standard error of shares; None where counts are exact."""
    noise, horizon = scheme.presence, scheme.survey.horizon
    if noise is None:
        return None
    cells = horizon * len(scheme.kinds)
    attributes = {}
    for question in scheme.questions:
        own, share = precisions[question.name], scheme.answering_share(question)
        added = {f: sqrt(share_variance(noise, question, horizon, f)) for f in (0.0, 0.5)}
        errors = {
            0.0: hypot(own.if_nobody, added[0.0] / own.reports),
            0.5: hypot(own.if_half, added[0.5] / own.reports),
        }
        alone, worst = (own.if_half, 0.5) if errors[0.5] > errors[0.0] else (own.if_nobody, 0.0)
        attributes[question.name] = PresenceErrors(
            largest=noise.largest[question.name],
            scale=noise.supports_scale(question.name),
            if_nobody=errors[0.0],
            if_half=errors[0.5],
            devices_needed=ceil(_reports_for(error, alone**2 * own.reports, added[worst] ** 2) / share),
        )
    return PresencePlan(
        epsilon=noise.epsilon,
        reports_epsilon=noise.reports_epsilon,
        supports_epsilon=noise.supports_epsilon,
        scale=noise.reports_scale,
        visitors=sqrt(cells * geometric_variance(noise.reports_scale)),
        attributes=attributes,
    )


def _reports_for(error: float, own: float, added: float) -> float:
    """The n for which own / n + added / n^2 is the square of the error.

    >>> [round(_reports_for(0.1, 2.0, added), 1) for added in (0.0, 1000.0)]
    [200.0, 431.7]
    """
    return (own + sqrt(own**2 + 4 * added * error**2)) / (2 * error**2)
