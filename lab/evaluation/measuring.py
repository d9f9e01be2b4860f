"""MSE_avg of methods, by running the devices' own code on a known truth many times (docs/evaluation.md).

Methods share draws where they draw the same thing, so differences between methods have smaller errors than the figures
themselves.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import isfinite, sqrt
from typing import Any

import numpy as np

from analytics.estimation import drawn_share, early_stopped, estimate, most_likely, norm_sub
from analytics.forecasting import mean_of_known
from lab.evaluation.methods import Method
from lab.evaluation.places import place_errors
from lab.evaluation.truth import Truth, noisy_priors
from lab.seeded_keyrings import seeded_keyring
from producers.scenarios import Presences
from protocols.arrays import Counts, Floats, Values
from protocols.errors import SurveyError
from protocols.mechanisms import Channel, MatrixRound, PlanarChannel
from protocols.privacy import Loss
from protocols.randomness import Keyring
from protocols.respondent import Respondent
from protocols.scheme import Scheme
from protocols.survey import Attribute, Survey, count_values

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


Correction = Callable[[Counts, int, Channel], Floats]
CORRECTIONS: dict[str, Correction] = {
    "raw": lambda counts, n, channel: estimate(counts, n, channel).value,
    "norm-sub": lambda counts, n, channel: norm_sub(estimate(counts, n, channel).value),
    "clip": lambda counts, n, channel: clip_renormalise(estimate(counts, n, channel).value),
    "likeliest": most_likely,
    # What is published for ordered mechanisms; the likeliest histogram for the others.
    "ibu": lambda counts, n, channel: (
        early_stopped(counts, channel)[0] if isinstance(channel, MatrixRound) else most_likely(counts, n, channel)
    ),
}
USUAL = ("raw", "norm-sub", "clip")  # the likeliest distribution is slow for many values
ROWS = 1 << 17  # devices at once: bounds the memory for any population
MOST_QUESTIONS = 64  # attributes of a survey
YES_NO = ("no", "yes")


@dataclass(frozen=True)
class Mean:
    """A mean over runs and its standard error (NaN for a single run)."""

    value: float
    error: float

    @classmethod
    def of(cls, figures: Floats) -> "Mean":
        """Of figures `[run]`."""
        runs = len(figures)
        return cls(float(figures.mean()), float(figures.std(ddof=1) / sqrt(runs)) if runs > 1 else float("nan"))


def plain(figures: Any) -> Any:
    """Figures as plain data, for JSON; None where one is not finite."""
    if isinstance(figures, Loss):
        return figures.model_dump()
    if isinstance(figures, Mean | PlaceErrors):
        figures = vars(figures)
    if isinstance(figures, dict):
        return {name: plain(figure) for name, figure in figures.items()}
    return None if isinstance(figures, float) and not isfinite(figures) else figures


@dataclass(frozen=True)
class PlaceErrors:
    """Of estimated places: metres that people must be moved to be where they are, and the error of areas' shares."""

    metres: Mean
    areas: Mean | None  # the root mean square over areas and periods; None without areas

    @classmethod
    def of(cls, figures: Floats) -> "PlaceErrors":
        """Of metres and errors of areas in each period, `[run, period, 2]`."""
        metres, areas = mean_of_known(figures[..., 0], (1,)), np.sqrt(mean_of_known(figures[..., 1] ** 2, (1,)))
        return cls(Mean.of(metres), None if np.isnan(areas).any() else Mean.of(areas))


@dataclass(frozen=True)
class Outcome:
    """What was found about one method at one budget."""

    method: Method
    eps: float

    def record(self) -> dict[str, Any]:
        """All of it as plain data, for JSON; None where a figure is not finite."""
        found = {name: figure for name, figure in vars(self).items() if name != "method"}
        return {"method": self.method.name, "terms": self.method.terms, **plain(found)}


@dataclass(frozen=True)
class Infeasible(Outcome):
    """A method that is not defined for a budget or for these attributes."""

    infeasible: str  # why


@dataclass(frozen=True)
class Score(Outcome):
    """The errors of one method at one budget."""

    eps_1: float | None
    mse: dict[str, Mean]  # MSE_avg, by correction
    rmse: dict[str, float]  # its root: the typical error of a share
    expected_mse: float  # of raw in theory (PROTOCOLS 1); NaN for places, whose estimate is no sum over reports
    per_report: Loss  # computed from the channels, whatever budget was declared
    for_ever: Loss
    mechanisms: dict[str, str]  # by attribute: those that allomfree and adp chose
    by_attribute: dict[str, dict[str, float]]  # mean squared errors, by attribute and correction
    places: dict[str, PlaceErrors]  # of attributes of places, what their published estimates are off by

    @property
    def headline(self) -> str:
        """The correction that goes with the method, of those that were measured.

        That is clip for the papers' variants and Norm-Sub for ours; ibu for ordered mechanisms.
        """
        own = ["clip"] if self.method.terms == "published" else ["ibu"] * self.method.ordered + ["norm-sub"]
        return next((name for name in own if name in self.mse), next(iter(self.mse)))


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
    >>> score.mechanisms, 0.5 < score.mse["raw"].value / score.expected_mse < 2
    ({'plan': 'grr'}, True)
    """
    truth = replace(truth, priors=noisy_priors(truth, prior_eps, np.random.default_rng(seed)))
    outcomes, cases = list[Outcome](), list(product(budgets, methods))
    for eps, method in cases:
        progress(len(outcomes), len(cases), f"{method.name} at eps {eps:g}")
        try:
            scheme = Scheme(method.survey(truth, eps, alpha))
        except SurveyError as error:
            outcomes.append(Infeasible(method, eps, _reason(error, truth)))
        else:
            outcomes.append(_score(method, eps, scheme, truth, list(respondents(scheme, runs, seed)), corrections))
    return outcomes


def _reason(error: SurveyError, truth: Truth) -> str:
    """Why a method is not possible, with the names of the users' attributes instead of the made-up ones."""
    reason = error.message.removeprefix("survey 'evaluation': ") + (f" ({error.hint})" if error.hint else "")
    own = {f"'a{place}'": repr(name) for place, name in enumerate(truth.sizes) if f"a{place}" not in truth.sizes}
    return re.sub(r"'a\d+'", lambda found: own.get(found[0], found[0]), reason)


def _score(
    method: Method, eps: float, scheme: Scheme, truth: Truth, runs: Sequence[Respondent], corrections: Sequence[str]
) -> Score:
    asked = list(zip(truth.sizes, scheme.questions, strict=True))
    shape = len(runs), len(truth.moments), len(asked)
    errors, expected = np.full((*shape, len(corrections)), np.nan), np.full(shape, np.nan)  # NaN: no reports
    places = {name: np.full((*shape[:2], 2), np.nan) for name in truth.places}  # metres, and errors of areas
    for run, respondent in enumerate(runs):
        for period, moment in enumerate(truth.moments):
            counted = zip(asked, supports(respondent, moment, truth.sizes), strict=True)
            for place, ((name, question), (counts, n)) in enumerate(counted):
                if n == 0:
                    continue  # without reports there is no estimate
                shares, channel = truth.frequencies[name][period], question.channel
                if not isinstance(channel, PlanarChannel):
                    sampled = drawn_share(n, truth.people[period]) * shares * (1 - shares)
                    expected[run, period, place] = (channel.variance(shares) - sampled).mean() / n
                estimates = [_corrected(correction, counts, n, channel) for correction in corrections]
                errors[run, period, place] = [((estimated - shares) ** 2).mean() for estimated in estimates]
                if name in truth.places:
                    published = _corrected("norm-sub", counts, n, channel)
                    places[name][run, period] = place_errors(truth.places[name], published, shares)
    by_run, by_attribute = mean_of_known(errors, (1, 2)), mean_of_known(errors, (0, 1)).tolist()
    mse = {name: Mean.of(by_run[:, which]) for which, name in enumerate(corrections)}
    return Score(
        method,
        eps,
        scheme.survey.eps_1,
        mse,
        {name: sqrt(mean.value) for name, mean in mse.items()},
        float(mean_of_known(expected, (0, 1, 2))),
        scheme.guarantees.per_report,
        scheme.guarantees.for_ever,
        {name: question.label for name, question in asked},
        {name: dict(zip(corrections, row, strict=True)) for (name, _), row in zip(asked, by_attribute, strict=True)},
        {name: PlaceErrors.of(figures) for name, figures in places.items()},
    )


def respondents(scheme: Scheme, runs: int, seed: int) -> Iterator[Respondent]:
    """The devices of each run: runs differ in their noise."""
    keyring = seeded_keyring(seed)
    return (Respondent(scheme, Keyring(keyring.key(("run", str(run))))) for run in range(runs))


def _corrected(correction: str, counts: Counts, n: int, channel: Channel) -> Floats:
    """Estimates. Those of places are distributions already: only the likeliest is another one."""
    done = isinstance(channel, PlanarChannel) and correction != "likeliest"
    return CORRECTIONS["raw" if done else correction](counts, n, channel)


def supports(respondent: Respondent, moment: Presences, names: Iterable[str]) -> list[tuple[Counts, int]]:
    """Support counts and number of reports of one period, of each question; `names` are those of their values."""
    asked = {q.name: rows for questions, rows in respondent.asked(moment.devices, moment.period) for q in questions}
    counted = []
    for name, question in zip(names, respondent.scheme.questions, strict=True):
        rows = asked[question.name]
        counts = np.zeros(question.k, dtype=np.int64)
        for first in range(0, len(rows), ROWS):
            some = rows[first : first + ROWS]
            devices, values = moment.devices[some], moment.values[name][some]
            if question.sets:
                values = respondent.values(question, devices, {question.name: values}, moment.period)
            answers = respondent.answers(question, devices, moment.period, values)
            counts += question.mechanism.encoding.count(answers, np.zeros(len(some), dtype=np.int64), 1)[0]
        counted.append((counts, len(rows)))
    return counted


def compare_sets(
    survey: Survey,
    sets: Values,
    budgets: Sequence[float],
    *,
    alpha: float | None,
    runs: int,
    seed: int,
    progress: Progress,
) -> list[dict[str, Any]]:
    """Sets beside yes/no questions: the same devices, the same budget, and how far estimated shares are from the truth.

    Drawn elements are asked with the mechanism that names one of them and with the one that has a bit for each. Beside
    them each value is an attribute of its own, of which a device answers one (smp): at the same loss between any two
    sets. With `alpha` there are memos, and a report has that part of the budget.

    `rmse` is the root mean square error of shares, `expected` that which a plan expects of rare values.
    """
    (attribute,) = survey.attributes
    truth = count_values(sets, attribute.k) / len(sets)
    cases = [(eps, *way) for eps in budgets for way in _ways(survey, attribute, eps, alpha)]
    scores = list[dict[str, Any]]()
    for place, (eps, way, scheme) in enumerate(cases):
        progress(place, len(cases), f"{way} at {eps:g}")
        errors = [_shares(one, attribute, sets) - truth for one in respondents(scheme, runs, seed)]
        question = scheme.questions[0]
        expected = (question.variance / len(sets) / scheme.answering_share(question)) ** 0.5
        rmse = plain(Mean.of(np.sqrt(np.mean(np.square(errors), axis=1))))
        facts = {"way": way, "eps": eps, "mechanism": question.label}
        scores.append({**facts, "rmse": rmse, "expected": expected})
    return scores


def _ways(survey: Survey, attribute: Attribute, eps: float, alpha: float | None) -> Iterator[tuple[str, Scheme]]:
    budgets = {"eps": eps} if alpha is None else {"eps": None, "eps_inf": eps, "eps_1": alpha * eps}
    terms = {"eps_inf": None, "eps_1": None, "devices": None, "one_in": 1, **budgets}
    mechanisms = ("grr", "oue") if alpha is None else ("l-grr", "l-osue")
    for way, mechanism in zip(("set, named", "set, bits"), mechanisms, strict=True):
        asked = attribute.model_copy(update={"mechanism": mechanism})
        yield way, Scheme(survey.model_copy(update={**terms, "attributes": (asked,)}))
    if attribute.k <= MOST_QUESTIONS:
        alone = tuple(Attribute(name=f"v{place}", values=YES_NO) for place in range(attribute.k))
        yield "yes or no", Scheme(survey.model_copy(update={**terms, "attributes": alone}))


def _shares(respondent: Respondent, attribute: Attribute, sets: Values) -> Floats:
    """The estimated shares of all values, in the first period: of sets, or of who has the value of each question."""
    questions, devices = respondent.scheme.questions, np.arange(len(sets), dtype=np.uint64)
    asked = {q.name: sets if q.sets else (sets == place).any(axis=1) * 1 for place, q in enumerate(questions)}
    counted = supports(respondent, Presences(0, devices, asked), asked)
    found = [estimate(counts, n, q.channel).value for q, (counts, n) in zip(questions, counted, strict=True)]
    return found[0][: attribute.k] if questions[0].sets else np.array(found)[:, 1]
