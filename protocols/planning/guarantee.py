"""The guarantees of a plan: losses between two histories, by what an observer sees."""

from math import inf

from protocols.planning.precision import PlanModel
from protocols.planning.ways import budgets_in_words
from protocols.privacy.loss import Loss, PlaceLoss
from protocols.scheme import Scheme

LINKED = (2, 7, 30, 365)  # linked reports of values that never change, between one and all, that the plan shows
ANY = (2, 7, 10, 100)  # linked reports of any two histories that the plan shows


class GuaranteePlan(PlanModel):
    """What observers can learn, between histories of each relation.

    `constant` and `any` are by number of linked reports (with one_in: of consecutive periods whose reports are linked),
    `per_window` is for any one_in consecutive periods, `neighbours` are by ordered attribute. `cells` is how many memos
    of each attribute a device may have. What rests on the survey's cap does not hold after a loss of the memo store
    was accepted; the figures `without_cap` do. They are None where the cap makes no difference.
    """

    declared: str
    per_report: Loss
    per_window: Loss | None
    constant: dict[int, Loss]
    for_ever: Loss
    per_additional_value: Loss | None
    renaming: Loss | None
    renaming_without_cap: Loss | None
    cells: dict[str, int] | None
    any: dict[int, Loss]
    any_without_cap: dict[int, Loss] | None
    neighbours_per_report: dict[str, float]
    neighbours_for_ever: dict[str, float]
    places: dict[str, tuple[PlaceLoss, ...]]  # by attribute of places: losses between places so far apart


def guarantee_plan(scheme: Scheme) -> GuaranteePlan:
    """The guarantees of a compiled survey."""
    survey, promise = scheme.survey, scheme.guarantees
    repeats, text = survey.longitudinal, budgets_in_words(survey)
    return GuaranteePlan(
        declared=f"{text}, guarantee: {survey.guarantee}" if scheme.questions[0].faked else text,
        constant={t: promise.constant(t) for t in LINKED},
        cells=dict(zip([q.name for q in scheme.questions], promise.values, strict=True)) if repeats else None,
        neighbours_per_report=promise.between_neighbours(1),
        neighbours_for_ever=promise.between_neighbours(inf) if repeats else {},
        **promise.figures(ANY),
    )
