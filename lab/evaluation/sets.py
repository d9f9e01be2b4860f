"""Sets beside yes/no questions: the same devices, the same budget, and how far estimated shares are from the truth.

Drawn elements are asked with the mechanism that names one of them and with the one that has a bit for each. Beside
them each value is an attribute of its own, of which a device answers one (smp): at the same loss between any two sets.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from analytics.estimation import estimate
from lab.evaluation.measuring import Mean, plain, respondents, supports
from producers.scenarios import Presences
from protocols.arrays import Floats, Values
from protocols.respondent import Respondent
from protocols.scheme import Scheme
from protocols.survey import Attribute, Survey, count_values

MOST_QUESTIONS = 64  # attributes of a survey
YES_NO = ("no", "yes")


def compare_sets(
    survey: Survey,
    sets: Values,
    budgets: Sequence[float],
    *,
    alpha: float | None,
    runs: int,
    seed: int,
    progress: Callable[[int, int, str], None],
) -> list[dict[str, Any]]:
    """Each way and budget; with `alpha` there are memos, and a report has that part of the budget.

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
