"""Sets beside yes/no questions: the same devices, the same budget, and how far estimated shares are from the truth.

Drawn elements are asked with the mechanism that names one of them and with the one that has a bit for each. Beside
them each value is an attribute of its own, of which a device answers one (smp): at the same loss between any two sets.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from analytics.estimation import estimate
from lab.evaluation.measuring import respondents
from lab.evaluation.scores import Mean, plain
from protocols.arrays import Floats, Values
from protocols.question import Question
from protocols.respondent import Respondent
from protocols.scheme import Scheme
from protocols.survey import Attribute, Survey, count_values

MOST_QUESTIONS = 64  # attributes of a survey
YES_NO = ("no", "yes")


@dataclass(frozen=True)
class SetScore:
    """The root mean square error of the shares of one way to ask, and that which its plan expects of rare values."""

    way: str
    eps: float
    mechanism: str
    rmse: Mean
    expected: float

    def record(self) -> dict[str, Any]:
        return {**vars(self), "rmse": plain(self.rmse)}


def compare_sets(
    survey: Survey,
    sets: Values,
    budgets: Sequence[float],
    *,
    alpha: float | None,
    runs: int,
    seed: int,
    progress: Callable[[int, int, str], None],
) -> list[SetScore]:
    """Each way and budget; with `alpha` there are memos, and a report has that part of the budget."""
    (attribute,) = survey.attributes
    truth = count_values(sets, attribute.k) / len(sets)
    cases = [(eps, *way) for eps in budgets for way in _ways(survey, attribute, eps, alpha)]
    scores = []
    for place, (eps, way, scheme) in enumerate(cases):
        progress(place, len(cases), f"{way} at {eps:g}")
        errors = [_shares(one, attribute, sets) - truth for one in respondents(scheme, runs, seed)]
        question = scheme.questions[0]
        expected = (question.variance / len(sets) / scheme.answering_share(question)) ** 0.5
        found = Mean.of(np.sqrt(np.mean(np.square(errors), axis=1)))
        scores.append(SetScore(way, eps, question.label, found, expected))
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
    """The estimated shares of all values, in the first period."""
    devices = np.arange(len(sets), dtype=np.uint64)
    found = []
    for questions, rows in respondent.asked(devices, 0):
        for question in questions:
            values = _values(question, sets[rows])
            elements = respondent.values(question, devices[rows], {question.items.name: values}, 0)
            answers = respondent.answers(question, devices[rows], 0, elements)
            counts = question.mechanism.encoding.count(answers, np.zeros(len(rows), dtype=np.int64), 1)[0]
            shares = estimate(counts, len(rows), question.channel).value
            found.append(shares[: attribute.k] if question.several > 1 else shares[1:])
    return np.concatenate(found)


def _values(question: Question, sets: Values) -> Values:
    """The sets, or whether they have the value that a question is about."""
    return sets if question.several > 1 else (sets == int(question.name[1:])).any(axis=1).astype(np.int64)
