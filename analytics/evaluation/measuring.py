"""MSE_avg of methods, by running the devices' own code on a known truth many times.

    MSE_avg = mean over runs, periods and attributes of the mean over values of (estimate - truth)^2

The truth is the share of each value among those present in the period, as in the papers. Runs differ in the noise
only. Methods share draws where they draw the same thing, so differences between methods have smaller errors than the
figures themselves.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from analytics.estimation.consistent import clip_renormalise, norm_sub
from analytics.estimation.estimates import estimate, variance
from analytics.estimation.likelihood import most_likely
from analytics.estimation.ordered import early_stopped
from analytics.estimation.votes import Floats
from analytics.evaluation.methods import Method
from analytics.evaluation.scores import Infeasible, Mean, Outcome, PlaceErrors, Score
from analytics.evaluation.truth import Moment, Truth
from protocols.errors import SurveyError
from protocols.mechanisms import Channel, MatrixChannel, PlanarChannel
from protocols.randomness import Keyring
from protocols.respondent import Respondent
from protocols.scheme import Scheme
from protocols.survey_text import Document, explain

Correction = Callable[[Floats, Floats, Channel], Floats]
Progress = Callable[[int, int, str], None]


def _early_stopped(counts: Floats, n: Floats, channel: Channel) -> Floats:
    """What is published for ordered mechanisms; the likeliest histogram for the others."""
    if not isinstance(channel, MatrixChannel):
        return most_likely(counts, n, channel)
    return np.array([early_stopped(row, channel)[0] for row in counts.astype(np.int64)]).reshape(counts.shape)


CORRECTIONS: dict[str, Correction] = {
    "raw": lambda counts, n, channel: estimate(counts, n, channel).value,
    "norm-sub": lambda counts, n, channel: norm_sub(estimate(counts, n, channel).value),
    "clip": lambda counts, n, channel: clip_renormalise(estimate(counts, n, channel).value),
    "likeliest": most_likely,
    "ibu": _early_stopped,
}
USUAL = ("raw", "norm-sub", "clip")  # the likeliest distribution is slow for many values
ROWS = 1 << 17  # devices at once: bounds the memory for any population


def evaluate(
    truth: Truth,
    methods: Sequence[Method],
    budgets: Sequence[float],
    keyring: Keyring,
    *,
    alpha: float = 0.5,
    runs: int = 10,
    corrections: Sequence[str] = USUAL,
    progress: Progress = lambda done, total, what: None,
) -> list[Outcome]:
    """Every method at every budget; longitudinal ones with eps_1 = alpha * eps_inf.

    >>> from analytics.evaluation.truth import Snapshot
    >>> from analytics.evaluation.methods import choose
    >>> day = Snapshot(0, np.arange(20_000, dtype=np.uint64), {"plan": np.arange(20_000) % 3})
    >>> (score,) = evaluate(Truth({"plan": 3}, [day]), choose(["smp[grr]"]), [1.0], Keyring(bytes(32)), runs=20)
    >>> score.mechanisms, 0.5 < score.mse["raw"].value / score.expected < 2
    ({'plan': 'grr'}, True)
    """
    total = len(budgets) * len(methods) * runs * len(truth.moments)
    outcomes: list[Outcome] = []
    for eps in budgets:
        for method in methods:
            begun = len(outcomes) * runs * len(truth.moments)

            def step(done: int, what: str = f"{method.name} at eps {eps:g}", begun: int = begun) -> None:
                progress(begun + done, total, what)

            try:
                scheme = _scheme(method, truth, eps, alpha)
            except SurveyError as error:
                outcomes.append(Infeasible(method, eps, _reason(error, truth)))
            else:
                runs_done = list(_runs(scheme, truth, keyring, runs, corrections, step))
                outcomes.append(_score(method, eps, scheme, truth, corrections, runs_done))
    return outcomes


def _scheme(method: Method, truth: Truth, eps: float, alpha: float) -> Scheme:
    try:
        return Scheme(method.survey(truth, eps, alpha))
    except ValidationError as error:
        named = Document({"attributes": [{"name": name} for name in truth.sizes]})
        raise SurveyError(explain(error, named).replace("\n", "; ")) from None


def _reason(error: SurveyError, truth: Truth) -> str:
    """Why a method is not possible, with the names of the users' attributes instead of the made-up ones."""
    reason = error.message.removeprefix("survey 'evaluation': ") + (f" ({error.hint})" if error.hint else "")
    made_up = {f"a{place}": name for place, name in enumerate(truth.sizes)}
    own = {repr(made): repr(name) for made, name in made_up.items() if made not in truth.sizes}
    return re.sub(r"'a\d+'", lambda found: own.get(found[0], found[0]), reason)


@dataclass(frozen=True)
class _Run:
    """Mean squared errors `[period, attribute, correction]` and predictions `[period, attribute]`; NaN: no reports.

    `places[attribute]` are metres and errors of areas, `[period, 2]`.
    """

    errors: Floats
    expected: Floats
    places: dict[str, Floats]


def _runs(
    scheme: Scheme,
    truth: Truth,
    keyring: Keyring,
    runs: int,
    corrections: Sequence[str],
    step: Callable[[int], None],
) -> Iterator[_Run]:
    for run in range(runs):
        respondent = Respondent(scheme, Keyring(keyring.key(("run", str(run)))))
        periods = []
        for at, moment in enumerate(truth.moments):
            step(run * len(truth.moments) + at)
            periods.append(supports(respondent, moment, list(truth.sizes)))
        shape = (len(truth.moments), len(truth.sizes))
        errors, expected = np.full((*shape, len(corrections)), np.nan), np.full(shape, np.nan)
        places = {name: np.full((len(truth.moments), 2), np.nan) for name in truth.places}
        for place, (name, question) in enumerate(zip(truth.sizes, scheme.questions, strict=True)):
            counts = np.array([period[place][0] for period in periods], dtype=np.float64)
            n = np.array([period[place][1] for period in periods], dtype=np.float64)
            there = n > 0  # without reports there is no estimate
            counts, n, shares = counts[there], n[there], truth.frequencies[name][there]
            if not isinstance(question.channel, PlanarChannel):
                expected[there, place] = variance(shares, n, question.channel, truth.people[there]).mean(axis=1)
            for which, correction in enumerate(corrections):
                estimates = _corrected(correction, counts, n, question.channel)
                errors[there, place, which] = ((estimates - shares) ** 2).mean(axis=1)
            if name in truth.places:
                published = zip(_corrected("norm-sub", counts, n, question.channel), shares, strict=True)
                places[name][there] = [truth.places[name].errors(*pair) for pair in published]
        yield _Run(errors, expected, places)


def _corrected(correction: str, counts: Floats, n: Floats, channel: Channel) -> Floats:
    """Estimates `[period, value]`. Those of places are distributions already, and there is nothing to correct."""
    return CORRECTIONS["raw" if isinstance(channel, PlanarChannel) else correction](counts, n, channel)


def supports(respondent: Respondent, moment: Moment, names: Sequence[str]) -> list[tuple[NDArray[np.int64], int]]:
    """Support counts and number of reports, attribute by attribute, of one period."""
    scheme = respondent.scheme
    asked = {q.name: rows for questions, rows in respondent.asked(moment.devices, moment.period) for q in questions}
    counted = []
    for name, question in zip(names, scheme.questions, strict=True):
        rows = asked[question.name]
        counts = np.zeros(question.k, dtype=np.int64)
        for first in range(0, len(rows), ROWS):
            some = rows[first : first + ROWS]
            answers = respondent.answers(question, moment.devices[some], moment.period, moment.values[name][some])
            counts += question.mechanism.encoding.count(answers, np.zeros(len(some), dtype=np.int64), 1)[0]
        counted.append((counts, len(rows)))
    return counted


def _score(
    method: Method, eps: float, scheme: Scheme, truth: Truth, corrections: Sequence[str], runs: list[_Run]
) -> Score:
    errors = np.array([run.errors for run in runs])  # [run, period, attribute, correction]
    by_run = _mean(errors, (1, 2))
    by_attribute = _mean(errors, (0, 1))
    return Score(
        method,
        eps,
        scheme.survey.eps_1,
        {name: mean_of_runs(by_run[:, which]) for which, name in enumerate(corrections)},
        float(_mean(np.array([run.expected for run in runs]), (0, 1, 2))),
        scheme.guarantees,
        {name: question.label for name, question in zip(truth.sizes, scheme.questions, strict=True)},
        {
            name: dict(zip(corrections, by_attribute[place].tolist(), strict=True))
            for place, name in enumerate(truth.sizes)
        },
        {name: _place_errors(np.array([run.places[name] for run in runs])) for name in truth.places},
    )


def _place_errors(figures: Floats) -> PlaceErrors:
    """From `[run, period, 2]`: the means over periods of metres, and the root mean squares of areas."""
    metres, areas = _mean(figures[..., 0], (1,)), np.sqrt(_mean(figures[..., 1] ** 2, (1,)))
    return PlaceErrors(mean_of_runs(metres), None if np.isnan(areas).any() else mean_of_runs(areas))


def _mean(cells: Floats, axes: tuple[int, ...]) -> NDArray[Any]:
    """The mean over the entries with reports; NaN where there are none."""
    there = np.isfinite(cells)
    total, count = np.where(there, cells, 0).sum(axis=axes), there.sum(axis=axes)
    return np.asarray(np.where(count > 0, total / np.maximum(count, 1), np.nan))


def mean_of_runs(figures: Floats) -> Mean:
    """The mean of figures `[run]`, and its standard error."""
    runs = len(figures)
    error = float(figures.std(ddof=1) / sqrt(runs)) if runs > 1 else float("nan")
    return Mean(float(figures.mean()), error)
