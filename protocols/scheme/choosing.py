"""Which mechanism asks each question, and with which budget: what the survey names, or what a chooser chooses."""

from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from math import log
from typing import NoReturn

import numpy as np

from protocols.arrays.aliases import Floats
from protocols.errors import InfeasibleError, SurveyError
from protocols.mechanisms.catalogue import RECORDS, build, fitting
from protocols.mechanisms.mechanism import Budget
from protocols.mechanisms.places.area import Area
from protocols.mechanisms.portable import exp
from protocols.mechanisms.record import AUTO, CHOOSERS, MAX_VALUES, MechanismRecord, Use
from protocols.privacy.crowd import evidence
from protocols.privacy.hidden import Ask, Budgets, amplified, calibrated
from protocols.privacy.linking import pair_information
from protocols.privacy.risk import attribute_guess
from protocols.question import Question
from protocols.survey.attribute import BY_SIZE, Attribute
from protocols.survey.crosses import Crossed
from protocols.survey.grid import Grid
from protocols.survey.model import Survey
from protocols.survey.sets import Thresholds

Records = list[MechanismRecord]

SHOWN_AT_MOST = 1.05  # times luck: how well one report may show the true attribute before `auto` avoids it


class Choosing:
    """All that a survey asks, with the mechanisms that it may use."""

    def __init__(self, survey: Survey) -> None:
        self._survey = survey
        self._asked = survey.asked
        self._true: dict[tuple[int, str], Question] = {}
        self.discloses = survey.solution == "smp" and len(survey.attributes) > 1
        """Whether a report answers only the sampled question."""
        shares, count = survey.shares, len(self._asked)
        self._drawn = (Fraction(1, count if self.discloses else 1),) * count
        """The chance that a report answers each question: certain, where it answers all."""
        if shares is not None:
            self._drawn = tuple(Fraction(share) / sum(map(Fraction, shares)) for share in shares)
        self._hides = survey.solution in ("rs+fd", "rs+rfd")
        self._auto = any(attribute.mechanism == AUTO for attribute in self._asked)
        """Whether `auto` chooses for any attribute; the literature's choosers go by the error alone."""
        self._crowd = survey.devices if self._auto else None
        """The number of devices among which `auto` must hide one, if it is declared."""

    @property
    def use(self) -> Use:
        """How the survey's solution and budgets use mechanisms."""
        survey = self._survey
        if survey.solution in ("rs+fd", "rs+rfd"):
            return survey.solution
        if not survey.longitudinal:
            return "one-shot"
        return "memo only" if survey.sends_memo else "two rounds"

    def chosen(self) -> tuple[Question, ...]:
        """Of each attribute's mechanisms the one that ranks first, by variance at frequency 0 if nothing else differs.

        Attributes are independent of each other, except under `guarantee: attribute` and where the true attribute or
        one device in a crowd is to be hidden. There they are visited in turn, and one switches only if the rank of all
        together improves: that terminates, always with the same result.
        """
        options = [self._options(attribute) for attribute in self._asked]
        if not self._hides and self._crowd is None:
            asked_alone = ((self._ask_truly(place, one) for one in records) for place, records in enumerate(options))
            return tuple(min(questions, key=lambda question: question.variance) for questions in asked_alone)
        best = self._ask(self._start(options))
        while True:
            before = best
            for place, records in enumerate(options):
                for record in records:
                    asked = [question.record for question in best]
                    if asked[place] is not record:
                        asked[place] = record
                        best = min(best, self._ask(asked), key=self._rank)
            if best is before:
                return best

    def _start(self, options: list[Records]) -> Records:
        """Where to begin: if the crowd is known, with the mechanisms whose answers link least.

        A report that answers all attributes links by all of them. If even these link, no others would not.
        """
        start = [records[0] for records in options]
        if self._crowd is not None:
            for place, records in enumerate(options):
                asked = {record: self._ask([*start[:place], record, *start[place + 1 :]]) for record in records}
                start[place] = min(asked, key=lambda r: pair_information(asked[r][place], self._survey.longitudinal))
        return start

    def _rank(self, questions: tuple[Question, ...]) -> tuple[float, ...]:
        """What `auto` minimises, the most important first.

        1. by how many kinds of reports a device is recognised in the survey's crowd (PROTOCOLS 9)
        2. under rs+rfd, how well one report shows the true attribute (PROTOCOLS 4): what the best guess gains over
           luck, if values are spread like the prior; up to `SHOWN_AT_MOST` it counts as nothing
        3. the error
        """
        linking, shown = 0, SHOWN_AT_MOST
        if self._crowd is not None:
            reports = evidence(questions, self.discloses, self._survey.longitudinal, self._survey.one_in)
            linking = sum(report.links(self._crowd) for report in reports)
        if self.use == "rs+rfd" and self._auto:
            shown = max(shown, round(len(questions) * attribute_guess(questions, same=False), 9))
        return linking, shown, sum(question.variance for question in questions)

    def _ask(self, records: Records) -> tuple[Question, ...]:
        """All attributes, with these mechanisms."""
        if not self._hides:
            return tuple(self._ask_truly(place, record) for place, record in enumerate(records))
        pairs = list(zip(self._asked, records, strict=True))

        def ask(budgets: Budgets) -> tuple[Question, ...]:
            return tuple(self._ask_among_fakes(attribute, record, budgets) for attribute, record in pairs)

        return ask(self._hidden_budgets(ask))

    def _hidden_budgets(self, ask: Ask) -> Budgets:
        """What the sampled attribute may spend under each guarantee (PROTOCOLS 4)."""
        inf, one = declared = self._declared
        if self._survey.guarantee == "attribute":
            return calibrated(declared, ask)
        if self._survey.guarantee == "published":
            count = len(self._survey.attributes)
            return amplified(inf, count), None if one is None else amplified(one, count)
        return declared

    def alternatives(self, questions: tuple[Question, ...], place: int) -> dict[str, Question]:
        """One of the questions with every mechanism that it could use, the others as they are; itself included."""
        found = {}
        for record in self._possible(self._asked[place]):
            with suppress(InfeasibleError):
                if self._hides:
                    others = [question.record for question in questions]
                    found[record.name] = self._ask([*others[:place], record, *others[place + 1 :]])[place]
                else:
                    found[record.name] = self._ask_truly(place, record)
        return found

    def _options(self, attribute: Attribute) -> Records:
        """The mechanisms to choose from: the one the survey names, or those that its chooser may choose."""
        name, possible = attribute.mechanism, self._possible(attribute)
        if name in CHOOSERS and attribute.placed:
            name = "geo-grid" if attribute.grid is None or attribute.grid.inside is None else "geo-tight"
        if name in CHOOSERS:
            hashed = isinstance(attribute, Crossed) and self._crowd is not None  # its bits may link, its hash may not
            chosen = [
                record
                for record in possible
                if record.may_be_chosen(name, self.use, attribute.k) or (hashed and record is RECORDS["loloha"])
            ]
            return chosen or self._refuse_size(attribute)
        record = RECORDS[name]
        if record.needs_order and not attribute.ordered:
            raise SurveyError(
                f"attribute {attribute.name!r}: {name} needs an order", "declare a range, or choose another mechanism"
            )
        try:
            attribute.check_size(f"attribute {attribute.name!r}", record)
        except ValueError as error:
            what, _, hint = str(error).partition("; ")
            raise SurveyError(what, hint) from None
        if record not in possible:
            raise SurveyError(
                f"attribute {attribute.name!r}: mechanism {name!r} does not fit this survey's solution and budgets",
                f"possible here: auto, {', '.join(record.name for record in possible)}",
            )
        return [record]

    def _refuse_size(self, attribute: Attribute) -> NoReturn:
        largest = max((r.max_values for r in fitting(self.use) if not r.needs_order), default=0)
        raise SurveyError(
            f"attribute {attribute.name!r} has {attribute.k:,} values; {attribute.mechanism} takes at most "
            f"{min(largest, MAX_VALUES):,} with this survey's solution and budgets",
            BY_SIZE,
        )

    def _possible(self, attribute: Attribute) -> Records:
        """Every mechanism that fits this attribute under the survey's solution and budgets."""
        possible = fitting(self.use, attribute.placed)
        if isinstance(attribute, Thresholds):  # nothing else is asked of slots, and thresholds of nothing else
            return [record for record in possible if record.name == attribute.mechanism]
        sets = attribute.several is not None
        fit = (record for record in possible if record.takes(attribute.k, attribute.ordered, sets))
        return [record for record in fit if record.name != "threshold"]

    def _ask_truly(self, place: int, record: MechanismRecord) -> Question:
        """One question; it does not depend on the others, so it is made once."""
        known = self._true.get((place, record.name))
        if known is None:
            attribute, drawn = self._asked[place], self._drawn[place]
            asked = _ask_for_place(attribute, record) if attribute.placed else self._ask_plainly(attribute, record)
            known = self._true[place, record.name] = replace(asked, drawn=drawn)
        return known

    def _ask_plainly(self, attribute: Attribute, record: MechanismRecord) -> Question:
        parts = len(self._survey.attributes) if self._survey.solution == "spl" else 1
        inf, one = self._declared
        budget = Budget(inf / parts, None if one is None else one / parts, self._survey.calibration)
        listed = attribute.number if isinstance(attribute, Thresholds) else attribute
        if listed.several is not None:
            return _ask_for_set(attribute, listed.several, record, budget)
        return Question(attribute, build(record.name, listed.k, budget, listed.parameter), record, budget)

    def _ask_among_fakes(self, attribute: Attribute, record: MechanismRecord, budgets: Budgets) -> Question:
        fakes, budget = record.fakes, Budget(*budgets, self._survey.calibration)
        assert fakes is not None, f"{record.name} does not fake"
        mechanism = build(fakes.one_round if budget.one is None else fakes.two_rounds, attribute.k, budget)
        fake = None if fakes.kind == "zero" else _distribution(attribute)
        return Question(attribute, mechanism, record, budget, 1 / len(self._survey.attributes), fake)

    @property
    def _declared(self) -> Budgets:
        inf = self._survey.eps or self._survey.eps_inf
        assert inf is not None
        return inf, self._survey.eps_1


def _ask_for_set(attribute: Attribute, several: int, record: MechanismRecord, budget: Budget) -> Question:
    """One element of a set, drawn with a chance of 1/L. An answer that names one element may tell more about it.

    For bits it may not: those of all elements of a set show together.
    """
    mechanism = build(record.name, attribute.k, budget)
    if mechanism.encoding.exclusive:
        one = None if budget.one is None else of_drawn(budget.one, several)
        mechanism = build(record.name, attribute.k, Budget(of_drawn(budget.inf, several), one, budget.calibration))
    return Question(attribute, mechanism.of_sets(several), record, budget)


def of_drawn(eps: float, several: int) -> float:
    """What an answer may cost about the drawn element, if it is to cost `eps` about the set.

    >>> round(of_drawn(1.0, 10), 3)
    2.9
    """
    return eps + log(several - (several - 1) * exp(-eps))


def _ask_for_place(attribute: Attribute, record: MechanismRecord) -> Question:
    """A place on a grid: its budgets are those of a cell side."""
    grid = attribute.grid
    assert grid is not None, "only grids have budgets by distance"
    if grid.inside == "areas":
        raise SurveyError(
            f"attribute {attribute.name!r}: its areas are in a file that was not read", "read the survey from its file"
        )
    reaches = [reach for reach in (attribute.geo_inf, attribute.geo) if reach is not None]
    for reach in reaches:
        _refuse_holes(attribute.name, grid, reach.radius)
    rates = [grid.rate(reach) for reach in reaches]
    budget = Budget(rates[0], rates[1] if len(rates) > 1 else None)
    try:
        return Question(attribute, build(record.name, grid.area, budget), record, budget)
    except InfeasibleError as error:
        raise SurveyError(f"attribute {attribute.name!r}: {error.message}", error.hint) from None


def _refuse_holes(name: str, grid: Grid, radius: float) -> None:
    """Positions outside move to the nearest cell inside, so two that are near may be told apart like two far ones."""
    areas = grid.area, Area(grid.columns, grid.rows)
    found, whole = (grid.cell * area.apart(radius / grid.cell) for area in areas)
    if found > 2 * whole:
        raise SurveyError(
            f"attribute {name!r}: two positions {radius:g} m apart can be in cells {found:,.0f} m apart, because "
            f"positions outside move to the nearest cell inside; on the whole grid it is {whole:,.0f} m",
            "close the hole with more cells inside, or leave inside out",
        )


def _distribution(attribute: Attribute) -> Floats:
    if attribute.prior is None:
        return np.full(attribute.k, 1 / attribute.k)
    return np.array([attribute.prior[value] for value in attribute.values])
