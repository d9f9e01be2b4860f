"""How large standard errors will be: of shares and means, with noise on presence, and at shares for wanted errors.

Shares in proportion to V / wanted^2 reach all wanted errors with the fewest devices (PROTOCOLS 4, Pairs). Estimates of
places have no variance in closed form: they keep their shares, and the others divide what is left.
"""

from collections.abc import Mapping
from contextlib import suppress
from math import ceil, exp, sqrt

import numpy as np

from protocols.errors import SettingsError, SurveyError
from protocols.mechanisms.channels import SupportChannel
from protocols.mechanisms.mechanism import Channel
from protocols.mechanisms.places.rounds import PlanarChannel
from protocols.question import Question
from protocols.scheme import Scheme
from protocols.survey.names import Told
from protocols.survey.sets import Thresholds, check_thresholds

NORMAL_95 = 1.959964
"""Half the width of a 95 % interval, in standard errors."""
DRIFTS = (0.05, 0.2, 1.0)
"""Of shares from one period to the next, in points, for which errors of nowcasts are planned."""
LEARNING = ((0.02, 0.025, 0.05, 0.13, 0.3), (2.0, 1.5, 1.2, 1.1, 1.05))
"""Drift in units of fresh noise, and by which factor the error grows because the drift is learnt."""
MOST_VALUES = 1024  # of amounts, of which all pairs are gone through


class PrecisionPlan(Told):
    """Standard errors of a frequency that is 0 (`if_nobody`), and of one that is a half.

    `reports` of the devices answer this attribute. `at_best` is what averaging any number of periods cannot beat,
    because memos repeat. `devices_needed` for the wanted error, at the worse of both.
    """

    reports: float
    if_nobody: float
    if_half: float
    at_best: float | None
    devices_needed: int


def standard_error(scheme: Scheme, question: Question, devices: int, frequency: float) -> float:
    """Of a value with this frequency, in a period in which this number of devices report."""
    return sqrt(mean_variance(question.channel, frequency) / (devices * scheme.answering_share(question)))


def nowcast_errors(scheme: Scheme, devices: int, drift: float) -> dict[str, float]:
    """By attribute, of a value that no device has, if its share moves by `drift` points; without a season.

    That of a filter which knows the drift (the steady state of a random walk in fresh noise), times what it takes to
    learn it, as simulations have shown. Noise of memos stays.

    >>> from protocols.survey_text.parsing import parse_survey
    >>> scheme = Scheme(parse_survey('''{id: s, start: 2026-01-01T00:00:00Z, period: 1d, eps: 2, one_in: 30,
    ...     attributes: [{name: a, values: [x, y, z, u, v, w]}]}'''))
    >>> alone = standard_error(scheme, scheme.questions[0], 6000, 0.0)
    >>> round(alone, 4), round(nowcast_errors(scheme, 6000, 0.2)["a"], 4)
    (0.0374, 0.0102)
    """
    errors, step = {}, (drift / 100) ** 2
    for question in (asked for asked in scheme.questions if not asked.attribute.placed):
        reports = devices * scheme.answering_share(question)
        memo = mean_variance(question.memo_channel, 0.0) / reports if scheme.survey.longitudinal else 0.0
        whole = mean_variance(question.channel, 0.0) / reports
        fresh = max(whole - memo, whole / 1000)
        known = (sqrt(step**2 + 4 * step * fresh) - step) / 2
        errors[question.name] = sqrt(float(np.interp(sqrt(step / fresh), *LEARNING)) ** 2 * known + memo)
    return errors


def mean_variance(channel: Channel, frequency: float) -> float:
    """n times the variance of a value with this frequency, the rest spread evenly; averaged over the values."""
    k = channel.k
    if isinstance(channel, SupportChannel):  # here a value's variance depends on its own frequency only
        return float(channel.variance(np.full(k, frequency)).mean())
    assert not isinstance(channel, PlanarChannel), "places have no unbiased estimate whose variance would be known"
    cases = np.full((k, k), (1 - frequency) / (k - 1))
    np.fill_diagonal(cases, frequency)
    return float(channel.variance(cases).diagonal().mean())


def mean_errors(scheme: Scheme, question: Question, devices: int) -> dict[str, float]:
    """By mechanism: the standard error of the mean of numbers in a period, if all are alike; nothing of others.

    With the attribute's own mechanism, and with thresholds, for the same budgets. Those of ordered mechanisms are
    budgets of a unit, which are not compared.

    >>> from protocols.survey_text.parsing import parse_survey
    >>> scheme = Scheme(parse_survey('''{id: s, start: 2026-01-01T00:00:00Z, period: 1d, eps: 1,
    ...  attributes: [{name: minutes, range: {last: 60}, role: amount}]}'''))
    >>> {name: round(error, 2) for name, error in mean_errors(scheme, scheme.questions[0], 10_000).items()}
    {'oue': 5.23, 'threshold': 0.65}
    """
    channel, reports = question.channel, devices * scheme.answering_share(question)
    if question.role != "amount" or not isinstance(channel, SupportChannel) or question.k > MOST_VALUES:
        return {}
    if isinstance(question.attribute, Thresholds):
        low, high = map(question.attribute.numbers_at, (0, 1))
        return {question.label: (high - low) / (2 * channel.parts * channel.gain) / sqrt(reports)}
    middles, even = np.array(question.attribute.numbers).mean(axis=1), np.full(question.k, 1 / question.k)
    supports = channel.support(even)
    spread = (channel.joint(even) - np.outer(supports, supports)) / channel.gain**2
    found = {question.label: sqrt(max(float(middles @ spread @ middles), 0) / reports)}
    with suppress(ValueError, SurveyError):
        asked = question.attribute.model_copy(update={"mechanism": "threshold", "parameter": None})
        check_thresholds(asked)
        attributes = tuple(asked if each.name == asked.name else each for each in scheme.survey.attributes)
        other = Scheme(scheme.survey.model_copy(update={"attributes": attributes}))
        found |= mean_errors(other, other.question(asked.name), devices)
    return found


def told_apart(eps: float) -> float:
    """With which probability two values are told apart at most at a loss of `eps`, if both are as likely beforehand.

    >>> [round(told_apart(eps), 2) for eps in (0, 0.5, 1, 2, 4)]
    [0.5, 0.62, 0.73, 0.88, 0.98]
    """
    return 1 / (1 + exp(-eps))


def widest_interval(scheme: Scheme, devices: int) -> float:
    """Half the width of the 95 % interval of a share of one half in one period, for the attribute with the widest."""
    return NORMAL_95 * max(standard_error(scheme, question, devices, 0.5) for question in scheme.questions)


class SharePlan(Told):
    """One question. `even` is the share of people with each value if all are alike, `error` its standard error.

    `proposed` is the share of devices with which the wanted error needs the fewest devices, `proposed_error` the error
    at that share with the planned number of devices.
    """

    name: str
    values: int
    share: float
    even: float
    error: float
    wanted: float
    proposed: float
    proposed_error: float


class SharesPlan(Told):
    """All questions but those about places, and how many devices reach all wanted errors at the proposed shares."""

    questions: tuple[SharePlan, ...]
    devices_needed: int


def shares_plan(scheme: Scheme, devices: int, error: float, wanted: Mapping[str, float]) -> SharesPlan | None:
    """The shares of a survey; `error` is wanted of questions that `wanted` does not name. None without shares.

    >>> from protocols.survey_text.parsing import parse_survey
    >>> scheme = Scheme(parse_survey('''{id: s, start: 2026-01-01T00:00:00Z, period: 1d, eps: 1, attributes: [
    ...     {name: a, values: [x, y]}, {name: b, values: [u, v]}]}'''))
    >>> found = shares_plan(scheme, 10_000, 0.02, {"a": 0.01})
    >>> [round(one.proposed, 3) for one in found.questions], found.devices_needed
    ([0.8, 0.2], 14634)
    """
    for name in wanted:
        scheme.survey.index(name)  # refuses what is not asked
        if scheme.question(name).attribute.placed:
            raise SettingsError(f"the error of places ({name}) has no formula", "leave it out, and measure: `evaluate`")
    if not scheme.discloses:
        if wanted:
            raise SettingsError("this survey has no shares: all devices answer all attributes", "leave --wanted out")
        return None
    asked = [question for question in scheme.questions if not question.attribute.placed]
    if not asked:
        return None
    errors = {question.name: wanted.get(question.name, error) for question in asked}
    left = sum(float(question.drawn) for question in asked)
    needed = {
        q.name: mean_variance(q.channel, 1 / q.k) * scheme.survey.one_in / errors[q.name] ** 2 / left for q in asked
    }
    total = sum(needed.values())
    return SharesPlan(
        questions=tuple(
            SharePlan(
                name=q.name,
                values=q.k,
                share=float(q.drawn),
                even=1 / q.k,
                error=standard_error(scheme, q, devices, 1 / q.k),
                wanted=errors[q.name],
                proposed=left * needed[q.name] / total,
                proposed_error=errors[q.name] * sqrt(total / devices),
            )
            for q in asked
        ),
        devices_needed=ceil(total),
    )
