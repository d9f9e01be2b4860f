"""The guarantees of a plan: losses between two histories, by what an observer sees; and losses as chances.

A chance is how often a guess is right, at most, by what somebody sees.
At a loss of x, of two that were equally likely the right one is guessed in at most e^x / (1 + e^x) of all cases.
"""

from collections.abc import Mapping
from math import exp, inf

from protocols.planning.central import CentralPlan
from protocols.planning.links import CrowdPlan
from protocols.planning.precision import told_apart
from protocols.planning.presence import PresencePlan
from protocols.planning.ways import budgets_in_words
from protocols.privacy.central.figure import CentralLoss, round_up
from protocols.privacy.guarantees import Loss, PlaceLoss
from protocols.scheme import Scheme
from protocols.survey.names import Told

LINKED = (2, 7, 30, 365)  # linked reports of values that never change, between one and all, that the plan shows
ANY = (2, 7, 10, 100)  # linked reports of any two histories that the plan shows
LARGEST = 50  # of losses whose factor is a number that people read
LINKED_ANY = 7  # linked reports of any two histories in the short list


class GuaranteePlan(Told):
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


class Chance(Told):
    """How often a guess is right, at most, and with luck alone; `epsilon` is None where there is no bound.

    `metres`: between two positions so far apart.
    """

    seen: str
    between: str
    right_guess: float
    luck: float = 0.5
    epsilon: float | None = None
    exact: bool = False
    metres: float | None = None

    @property
    def cases(self) -> str:
        """How often it is right, of 100 cases."""
        return of_100(self.right_guess)

    @property
    def luck_cases(self) -> str:
        return of_100(self.luck)

    @property
    def factor(self) -> str:
        """By how much odds change."""
        return factor_of(self.epsilon)


def chances(
    promise: GuaranteePlan, central: Mapping[str, CentralPlan] | None, loss_accepted: bool = False
) -> tuple[Chance, ...]:
    """Every loss that a plan states as a chance. `loss_accepted`: memos were lost, so no cap holds."""
    linked = "linked reports of a device" if promise.per_window is None else "consecutive periods of a device"
    found = [_chance("one report", "any two sets of answers", promise.per_report)]
    if promise.per_window is not None:
        found.append(_chance("any one_in consecutive periods", "any two histories", promise.per_window))
    found.append(_chance("all reports of a device, linked", "two values that never change", promise.for_ever))
    renaming = (promise.renaming_without_cap if loss_accepted else None) or promise.renaming
    if renaming is not None:
        found.append(_chance("all reports of a device, linked", "histories that change at the same times", renaming))
    several = (promise.any_without_cap or promise.any) if loss_accepted else promise.any
    found += [_chance(f"{t} {linked}", "any two histories", loss) for t, loss in several.items()]
    places = [_of_place(name, loss) for name, losses in promise.places.items() for loss in losses]
    return (*found, *_of_readers(central).values(), *places)


def in_short(
    promise: GuaranteePlan,
    central: Mapping[str, CentralPlan] | None,
    crowd: CrowdPlan,
    presence: PresencePlan | None,
) -> tuple[Chance, ...]:
    """Six lines of who can learn what: from one report, from all, from changes, from results; recognising; presence."""
    report, ever = promise.per_report.whole, promise.for_ever.whole
    answer, stays = "which of two answers", "which of two answers that never change"
    if promise.places.keys() == crowd.attributes.keys():  # of other surveys, a place is one of several answers
        near = next(loss for losses in promise.places.values() for loss in losses if loss.metres)
        report, ever = near.per_report, near.for_ever
        answer = stays = f"which of two places {near.metres:,.0f} m apart"
    every = _of_loss("all reports of a device, known to be of one", stays, ever)
    tables = every.model_copy(update={"seen": "all published results, which have no figure of their own here"})
    several = f"{LINKED_ANY} reports" if promise.per_window is None else f"reports of {LINKED_ANY} periods in a row"
    noise = None if presence is None else presence.epsilon
    worst = crowd.report or max(crowd.attributes.values(), key=lambda link: link.first_guess)
    return (
        _of_loss("one report", answer, report),
        every,
        _chance(f"{several}, known to be of one device", "which of two histories", promise.any[LINKED_ANY]),
        _of_readers(central).get("week", tables).model_copy(update={"between": stays}),
        Chance(
            seen="all reports of two periods",
            between="which of them is the same device's",
            right_guess=worst.first_guess,
            luck=worst.luck,
        ),
        _of_loss("the published numbers of reports", "whether a device reported", noise),
    )


def of_100(chance: float) -> str:
    """A chance as a number of 100 cases, rounded up to three digits.

    >>> of_100(told_apart(1)), of_100(told_apart(4)), of_100(told_apart(20)), of_100(0.00028813)
    ('73.2', '98.3', '100', '0.0289')
    """
    return f"{round_up(100 * chance):g}"


def factor_of(loss: float | None) -> str:
    """By which factor odds change at most.

    >>> factor_of(1), factor_of(None)
    ('2.72', 'any size')
    """
    return "any size" if loss is None or loss > LARGEST else f"{round_up(exp(loss)):,g}"


def _chance(seen: str, between: str, loss: Loss) -> Chance:
    return _of_loss(seen, between, loss.whole, loss.exact)


def _of_loss(seen: str, between: str, loss: float | None, exact: bool = True) -> Chance:
    right = 1.0 if loss is None else told_apart(loss)
    return Chance(seen=seen, between=between, right_guess=right, epsilon=loss, exact=exact)


def _of_readers(central: Mapping[str, CentralPlan] | None) -> dict[str, Chance]:
    """By span of time, where results have a figure of their own."""
    chances = {span: chance_of_readers(f"a {span}", figures.constant) for span, figures in (central or {}).items()}
    return {span: chance for span, chance in chances.items() if chance is not None}


def chance_of_readers(span: str, loss: CentralLoss) -> Chance | None:
    """What readers of all results of a span of time learn; None where there is no figure."""
    if loss.epsilon is None:
        return None
    # With a delta, P(A) <= e^x Q(A) + delta: the chance of a wrong guess is at least (1 - delta) / (1 + e^x).
    right = 1 - (1 - loss.delta) * (1 - told_apart(loss.epsilon))
    return Chance(
        seen=f"all results of {span}, if {loss.crowd:,} honest devices answer each question in a period",
        between=f"two values that never change, but for a chance of {loss.delta:g}",
        right_guess=right,
        epsilon=loss.epsilon,
    )


def _of_place(name: str, loss: PlaceLoss) -> Chance:
    """One report, between two positions."""
    apart = f"two positions {loss.metres:,.0f} m apart" + ("" if loss.protected else " (not protected)")
    return _of_loss(f"one report, {name}", apart, loss.per_report).model_copy(update={"metres": loss.metres})
