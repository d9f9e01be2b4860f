"""What `presence_epsilon` costs and protects: the noise of each published number, and what many presences tell."""

from collections.abc import Mapping
from math import ceil, exp, hypot, sqrt

from protocols.planning.precision import PrecisionPlan
from protocols.privacy.geometric import noise_quantile
from protocols.privacy.presence import REPORTS, PresenceNoise, SeriesName, share_variance
from protocols.scheme import Scheme
from protocols.survey.calendar import DAY
from protocols.survey.model import Survey
from protocols.survey.names import Told

CONFIDENCE = 0.95
LIVED: Mapping[str, Mapping[str, int]] = {
    "a day": {"days": 1, "day": 1, "week": 1, "month": 1, "year": 1},
    "a week": {"days": 7, "day": 7, "week": 2, "month": 2, "year": 2},
    "a month": {"days": 31, "day": 31, "week": 6, "month": 2, "year": 2},
}
"""In how many units consecutive days can lie, which need not begin with any of them."""


class SeriesPlan(Told):
    """One list of published numbers. `cost` is the most that one presence changes it, `scale` that of its noise.

    `half_width` is that of the 95 % interval of each number, `relative` the same as a share of all devices.
    """

    name: str
    cost: int
    scale: float
    half_width: int
    relative: float


class PresenceLoss(Told):
    """What all presences of a device in some time tell at most: as a loss, and as the chance of a right guess.

    An attacker who knows everything about all other devices guesses whether the device was there; half of all guesses
    without knowledge are right.
    """

    numbers: float
    numbers_chance: float
    answers: float
    answers_chance: float


class PresenceErrors(Told):
    """Standard errors of a share of one attribute, as for exact counts but with the noise on counts.

    `largest` is how many values a report may support, `scale` that of the noise on the supports of each value.
    """

    largest: int
    scale: float
    if_nobody: float
    if_half: float
    devices_needed: int


class PresencePlan(Told):
    """How `presence_epsilon` is divided between numbers of devices and answers, and what results from it."""

    epsilon: float
    reports_epsilon: float
    supports_epsilon: float
    series: tuple[SeriesPlan, ...]
    losses: dict[str, PresenceLoss]
    attributes: dict[str, PresenceErrors]


def presence_plan(
    scheme: Scheme, devices: int, precisions: Mapping[str, PrecisionPlan], error: float
) -> PresencePlan | None:
    """The plan of a survey's noise on counts, for a wanted standard error of shares; None where counts are exact."""
    noise = scheme.presence
    if noise is None:
        return None
    series = tuple(_series(noise, name, devices) for name in noise.scales)
    losses = {"a period": _loss(noise, 1, LIVED["a day"])}
    for time, instances in LIVED.items():
        periods = ceil(instances["days"] * DAY / scheme.survey.period)
        if scheme.survey.period <= instances["days"] * DAY and periods > 1:
            losses[time] = _loss(noise, periods, instances)
    return PresencePlan(
        epsilon=noise.epsilon,
        reports_epsilon=noise.reports_epsilon,
        supports_epsilon=noise.supports_epsilon,
        series=series,
        losses=losses,
        attributes=_attributes(scheme, noise, precisions, error) if noise.released.tables else {},
    )


def error_of_usual_noise(survey: Survey) -> int | None:
    """By how much a number of a period would be wrong (95 %) with `presence_epsilon: 1`; None where that is refused.

    >>> from protocols.survey_text import parse_survey
    >>> error_of_usual_noise(parse_survey('''{id: s, start: 2026-01-01T00:00:00Z, period: 1d, eps: 1,
    ...     visitors: calendar, attributes: [{name: a, values: [x, y]}]}'''))
    27
    """
    if any(attribute.placed for attribute in survey.attributes):
        return None
    noised = Scheme(survey.model_copy(update={"presence_epsilon": 1.0, "publish_from": None}))
    assert noised.presence is not None
    return noise_quantile((noised.presence.scales[REPORTS],), CONFIDENCE)


def _series(noise: PresenceNoise, name: SeriesName, devices: int) -> SeriesPlan:
    scale = noise.scales[name]
    half_width = noise_quantile((scale,), CONFIDENCE)
    return SeriesPlan(
        name=str(name), cost=noise.costs[name], scale=scale, half_width=half_width, relative=half_width / devices
    )


def _loss(noise: PresenceNoise, periods: int, instances: Mapping[str, int]) -> PresenceLoss:
    numbers = noise.loss(periods, instances, with_answers=False)
    answers = noise.loss(periods, instances)
    return PresenceLoss(
        numbers=numbers, numbers_chance=_chance(numbers), answers=answers, answers_chance=_chance(answers)
    )


def _chance(loss: float) -> float:
    """How often a guess between two equally likely histories is right, at most."""
    return 1 / (1 + exp(-loss))


def _attributes(
    scheme: Scheme, noise: PresenceNoise, precisions: Mapping[str, PrecisionPlan], error: float
) -> dict[str, PresenceErrors]:
    of = noise.released.tables[0]
    attributes = {}
    for question in scheme.questions:
        own, share = precisions[question.name], scheme.answering_share(question)
        added = {frequency: sqrt(share_variance(noise, question, frequency)) for frequency in (0.0, 0.5)}
        alone = {0.0: own.if_nobody, 0.5: own.if_half}
        errors = {frequency: hypot(one, added[frequency] / own.reports) for frequency, one in alone.items()}
        worst = max(errors, key=errors.__getitem__)
        needed = _reports_for(error, alone[worst] ** 2 * own.reports, added[worst] ** 2)
        attributes[question.name] = PresenceErrors(
            largest=noise.largest[question.name],
            scale=noise.supports_scale(question.name, of),
            if_nobody=errors[0.0],
            if_half=errors[0.5],
            devices_needed=ceil(needed / share),
        )
    return attributes


def _reports_for(error: float, own: float, added: float) -> float:
    """The n for which own / n + added / n^2 is the square of the error.

    >>> [round(_reports_for(0.1, 2.0, added), 1) for added in (0.0, 1000.0)]
    [200.0, 431.7]
    """
    return (own + sqrt(own**2 + 4 * added * error**2)) / (2 * error**2)
