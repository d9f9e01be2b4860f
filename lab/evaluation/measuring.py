"""MSE_avg of methods, by running the devices' own code on a known truth many times.

    MSE_avg = mean over runs, periods and attributes of the mean over values of (estimate - truth)^2

The truth is the share of each value among those present in the period, as in the papers. Runs differ in the noise
only. Methods share draws where they draw the same thing, so differences between methods have smaller errors than the
figures themselves.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from analytics.estimation import early_stopped, estimate, most_likely, norm_sub, variance
from analytics.forecasting import mean_of_known
from lab.evaluation.methods import Method
from lab.evaluation.scores import Infeasible, Mean, Outcome, PlaceErrors, Score
from lab.evaluation.truth import Truth, noisy_priors
from lab.seeded_keyrings import seeded_keyring
from producers.scenarios import Presences
from protocols.arrays import Counts, Floats
from protocols.errors import SurveyError
from protocols.mechanisms import Channel, MatrixChannel, PlanarChannel
from protocols.randomness import Keyring
from protocols.respondent import Respondent
from protocols.scheme import Scheme

Progress = Callable[[int, int, str], None]


def clip_renormalise(frequencies: Floats) -> Floats:
    """Cut at 0 and divide by the sum, as the papers do. Uniform if no frequency is positive.

    >>> clip_renormalise(np.array([0.7, 0.5, -0.1])).round(3).tolist()
    [0.583, 0.417, 0.0]
    """
    clipped = np.maximum(frequencies, 0)
    total = clipped.sum(axis=-1, keepdims=True)
    even = np.full_like(clipped, 1 / clipped.shape[-1])
    return np.asarray(np.divide(clipped, total, out=even, where=total > 0))


def _early_stopped(counts: Floats, n: Floats, channel: Channel) -> Floats:
    """What is published for ordered mechanisms; the likeliest histogram for the others."""
    if not isinstance(channel, MatrixChannel):
        return most_likely(counts, n, channel)
    return np.array([early_stopped(row, channel)[0] for row in counts.astype(np.int64)]).reshape(counts.shape)


CORRECTIONS: dict[str, Callable[[Floats, Floats, Channel], Floats]] = {
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
    *,
    alpha: float = 0.5,
    runs: int = 20,
    seed: int = 0,
    prior_eps: float = 0.1,
    corrections: Sequence[str] = USUAL,
    progress: Progress = lambda done, total, what: None,
) -> list[Outcome]:
    """Every method at every budget; longitudinal ones with eps_1 = alpha * eps_inf.

    `prior_eps` is the central budget of the noisy census from which RS+RFD draws fakes.

    >>> from lab.evaluation.methods import choose
    >>> day = Presences(0, np.arange(20_000, dtype=np.uint64), {"plan": np.arange(20_000) % 3})
    >>> (score,) = evaluate(Truth({"plan": 3}, [day]), choose(["smp[grr]"]), [1.0])
    >>> score.mechanisms, 0.5 < score.mse["raw"].value / score.expected < 2
    ({'plan': 'grr'}, True)
    """
    truth = replace(truth, priors=noisy_priors(truth, prior_eps, np.random.default_rng(seed)))
    outcomes, total = list[Outcome](), len(budgets) * len(methods) * runs
    for eps in budgets:
        for method in methods:

            def step(run: int, begun: int = len(outcomes) * runs, what: str = f"{method.name} at eps {eps:g}") -> None:
                progress(begun + run, total, what)

            try:
                scheme = Scheme(method.survey(truth, eps, alpha))
            except SurveyError as error:
                outcomes.append(Infeasible(method, eps, _reason(error, truth)))
            else:
                outcomes.append(_score(method, eps, scheme, truth, runs, seed, corrections, step))
    return outcomes


def _reason(error: SurveyError, truth: Truth) -> str:
    """Why a method is not possible, with the names of the users' attributes instead of the made-up ones."""
    reason = error.message.removeprefix("survey 'evaluation': ") + (f" ({error.hint})" if error.hint else "")
    own = {f"'a{place}'": repr(name) for place, name in enumerate(truth.sizes) if f"a{place}" not in truth.sizes}
    return re.sub(r"'a\d+'", lambda found: own.get(found[0], found[0]), reason)


def _score(
    method: Method,
    eps: float,
    scheme: Scheme,
    truth: Truth,
    runs: int,
    seed: int,
    corrections: Sequence[str],
    step: Callable[[int], None],
) -> Score:
    asked = list(zip(truth.sizes, scheme.questions, strict=True))
    shape = runs, len(truth.moments), len(asked)
    errors, expected = np.full((*shape, len(corrections)), np.nan), np.full(shape, np.nan)  # NaN: no reports
    places = {name: np.full((*shape[:2], 2), np.nan) for name in truth.places}  # metres, and errors of areas
    for run, respondent in enumerate(respondents(scheme, runs, seed)):
        step(run)
        periods = [supports(respondent, moment, truth.sizes) for moment in truth.moments]
        for place, (name, question) in enumerate(asked):
            counts = np.array([period[place][0] for period in periods], dtype=np.float64)
            n = np.array([period[place][1] for period in periods], dtype=np.float64)
            there = n > 0  # without reports there is no estimate
            counts, n, shares = counts[there], n[there], truth.frequencies[name][there]
            if not isinstance(question.channel, PlanarChannel):
                variances = variance(shares, n, question.channel, truth.people[there])
                expected[run, there, place] = variances.mean(axis=1)
            for which, correction in enumerate(corrections):
                estimates = _corrected(correction, counts, n, question.channel)
                errors[run, there, place, which] = ((estimates - shares) ** 2).mean(axis=1)
            if name in truth.places:
                published = zip(_corrected("norm-sub", counts, n, question.channel), shares, strict=True)
                places[name][run, there] = [truth.places[name].errors(*pair) for pair in published]
    by_run, by_attribute = mean_of_known(errors, (1, 2)), mean_of_known(errors, (0, 1))
    return Score(
        method,
        eps,
        scheme.survey.eps_1,
        {name: Mean.of(by_run[:, which]) for which, name in enumerate(corrections)},
        float(mean_of_known(expected, (0, 1, 2))),
        scheme.guarantees,
        {name: question.label for name, question in asked},
        {
            name: dict(zip(corrections, row, strict=True))
            for name, row in zip(truth.sizes, by_attribute.tolist(), strict=True)
        },
        {name: _place_errors(figures) for name, figures in places.items()},
    )


def respondents(scheme: Scheme, runs: int, seed: int) -> Iterator[Respondent]:
    """The devices of each run: runs differ in their noise."""
    keyring = seeded_keyring(seed)
    return (Respondent(scheme, Keyring(keyring.key(("run", str(run))))) for run in range(runs))


def _corrected(correction: str, counts: Floats, n: Floats, channel: Channel) -> Floats:
    """Estimates `[period, value]`. Those of places are distributions already: only the likeliest is another one."""
    done = isinstance(channel, PlanarChannel) and correction != "likeliest"
    return CORRECTIONS["raw" if done else correction](counts, n, channel)


def supports(respondent: Respondent, moment: Presences, names: Mapping[str, int]) -> list[tuple[Counts, int]]:
    """Support counts and number of reports, attribute by attribute, of one period."""
    asked = {q.name: rows for questions, rows in respondent.asked(moment.devices, moment.period) for q in questions}
    counted = []
    for name, question in zip(names, respondent.scheme.questions, strict=True):
        rows = asked[question.name]
        counts = np.zeros(question.k, dtype=np.int64)
        for first in range(0, len(rows), ROWS):
            some = rows[first : first + ROWS]
            answers = respondent.answers(question, moment.devices[some], moment.period, moment.values[name][some])
            counts += question.mechanism.encoding.count(answers, np.zeros(len(some), dtype=np.int64), 1)[0]
        counted.append((counts, len(rows)))
    return counted


def _place_errors(figures: Floats) -> PlaceErrors:
    """From `[run, period, 2]`: the means over periods of metres, and the root mean squares of areas."""
    metres, areas = mean_of_known(figures[..., 0], (1,)), np.sqrt(mean_of_known(figures[..., 1] ** 2, (1,)))
    return PlaceErrors(Mean.of(metres), None if np.isnan(areas).any() else Mean.of(areas))
