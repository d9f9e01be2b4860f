"""A survey, compiled: which mechanism asks each attribute, with which probabilities, and what its reports mean.

All probabilities are derived here; no caller computes a p or a q.

    spl              every attribute, each with its part of the budget
    smp              one attribute per device, drawn once for life, disclosed
    rs+fd, rs+rfd    every attribute; one of them (never disclosed) true, the others fake
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from hashlib import sha256

import numpy as np

from protocols.arrays.aliases import Floats
from protocols.errors import InfeasibleError, SurveyError
from protocols.mechanisms.catalogue import RECORDS, build, fitting
from protocols.mechanisms.channels import SupportChannel, variance_at_zero
from protocols.mechanisms.mechanism import Budget
from protocols.mechanisms.record import AUTO, CHOOSERS, MechanismRecord, Use
from protocols.privacy.amplification import Ask, Budgets, amplified, calibrated
from protocols.privacy.crowd import evidence, hidden_bits
from protocols.privacy.guarantees import Guarantees
from protocols.privacy.linking import pair_information
from protocols.privacy.presence import PresenceNoise, presence_noise
from protocols.privacy.risk import attribute_guess
from protocols.question import Question
from protocols.randomness.sampling import Table, digest, uniform
from protocols.survey.attribute import Attribute
from protocols.survey.crosses import Crossed
from protocols.survey.model import Survey

__all__ = ["PRESENCE_ONLY", "Question", "Scheme"]

Records = list[MechanismRecord]
PRESENCE_ONLY = ""  # stands for an attribute's name where a report answers none; no attribute has it
TERMS_VERSION = 1  # raised when the same resolved terms come to mean something else

SHOWN_AT_MOST = 1.05  # times luck: how well one report may show the true attribute before `auto` avoids it


class Scheme:
    """All questions of a survey.

    >>> from protocols.survey_text.parsing import parse_survey
    >>> scheme = Scheme(parse_survey('''
    ... {id: s, start: 2026-01-01T00:00:00Z, period: 1d, eps_inf: 2, eps_1: 1,
    ...  attributes: [{name: few, values: [a, b, c]}, {name: many, range: {last: 99}}]}'''))
    >>> [question.mechanism.name for question in scheme.questions]
    ['l-grr', 'l-osue']
    """

    def __init__(self, survey: Survey) -> None:
        self.survey = survey
        self._asked = survey.asked
        try:
            self.questions = self._choose([self._options(attribute) for attribute in self._asked])
        except InfeasibleError as error:
            raise SurveyError(f"survey {survey.id!r}: {error.message}", error.hint) from None
        self._places = {question.name: place for place, question in enumerate(self.questions)}
        self._refuse_linking_crosses()

    @cached_property
    def terms(self) -> bytes:
        """The resolved terms: all that a device must know to answer, as canonical JSON (docs/device-protocol.md).

        They have the declared terms, the mechanism of each attribute, the numbers that its tables follow from, and
        digests of all integers that devices draw with.
        """
        sampled = digest(self.sampled.integers) if self.sampling else None
        resolved = {
            "version": TERMS_VERSION,
            "declared": self.survey.declared_terms,
            "sampled": sampled,
            "questions": [question.terms for question in self.questions],
        }
        if self.survey.shares is not None:
            resolved["shares"] = self.survey.shares
        if self.takes_turns:
            resolved["places"] = digest(uniform(self.survey.one_in).integers)
        return json.dumps(resolved, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the resolved terms, 32 hexadecimal digits (PROTOCOLS 8).

        It is in each report, so that a report made under other terms is refused, and all draws derive from it.
        """
        return sha256(self.terms).hexdigest()[:32]

    @property
    def sampling(self) -> bool:
        """Whether each device answers truthfully about one attribute only, drawn once for life."""
        return self.survey.solution != "spl" and len(self.survey.attributes) > 1

    @cached_property
    def sampled(self) -> Table:
        """By which devices draw their question: evenly, or by the survey's shares."""
        shares = self.survey.shares
        return uniform(len(self.questions)) if shares is None else Table(shares)

    @property
    def discloses(self) -> bool:
        """Whether a report answers only the sampled attribute."""
        return self.survey.solution == "smp" and len(self.survey.attributes) > 1

    @property
    def takes_turns(self) -> bool:
        """Whether a device answers in some periods only, and reports nothing but its presence in the others."""
        return self.survey.one_in > 1

    def answering_share(self, question: Question) -> float:
        """The share of all reports that answer a question."""
        return float(question.drawn / self.survey.one_in)

    @property
    def kinds(self) -> tuple[str, ...]:
        """What reports are counted by: each belongs to exactly one kind, named after an attribute that it answers.

        Under smp there is a kind for each attribute, otherwise one that has the first attribute's name. Where devices
        take turns, reports that answer nothing are a kind of their own.
        """
        names = [question.name for question in self.questions]
        return (*(names if self.discloses else names[:1]), *([PRESENCE_ONLY] if self.takes_turns else []))

    @cached_property
    def forms(self) -> frozenset[tuple[str, ...]]:
        """Which attributes one report may answer: all in order, or any one, or none where devices take turns."""
        names = [question.name for question in self.questions]
        answers = [(name,) for name in names] if self.discloses else [tuple(names)]
        return frozenset([*answers, *([()] if self.takes_turns else [])])

    @property
    def forms_in_words(self) -> str:
        """The same for people: what a report of this survey does."""
        answers = "exactly one of its attributes" if self.discloses else "all of its attributes, in order"
        return f"answers {answers}" + (", or none of them" if self.takes_turns else "")

    @property
    def use(self) -> Use:
        """How the survey's solution and budgets use mechanisms."""
        survey = self.survey
        if survey.solution in ("rs+fd", "rs+rfd"):
            return survey.solution
        if survey.eps is not None:
            return "one-shot"
        return "memo only" if survey.eps_1 is None else "two rounds"

    @cached_property
    def guarantees(self) -> Guarantees:
        """What these questions reveal."""
        return Guarantees(self.survey, self.questions)

    @cached_property
    def presence(self) -> PresenceNoise | None:
        """The noise on what is published about presence; None where it is exact."""
        epsilon, horizon = self.survey.presence_epsilon, self.survey.horizon
        return None if epsilon is None else presence_noise(epsilon, horizon, self.questions, self.discloses)

    @cached_property
    def answer_bytes(self) -> dict[str, int]:
        """How many bytes an answer to each attribute has, in the survey's order."""
        return {question.name: question.mechanism.encoding.answer.bytes for question in self.questions}

    def question(self, name: str) -> Question:
        return self.questions[self._places[name] if name in self._places else self.survey.index(name)]

    def _refuse_linking_crosses(self) -> None:
        """A cross has many values, so its answers may link; a survey that declares its crowd must not ask it then."""
        devices = self.survey.devices
        if devices is None or not self.survey.crosses:
            return
        for found in evidence(self.questions, self.discloses, self.survey.longitudinal, self.survey.one_in):
            question = found.questions[0]
            if question.axes and found.links(devices):
                raise SurveyError(
                    f"survey {self.survey.id!r}: crosses: {question.name} would link reports: with {question.label} "
                    f"two reports of one device have {found.bits:.3g} bits in common ({found.answer_bits:.3g} of their "
                    f"answers, {found.trait_bits:.3g} of what the device keeps for life), and a crowd of {devices:,} "
                    f"hides {hidden_bits(devices):.3g}",
                    "use fewer values, a larger share, a wider ratio of eps_inf to eps_1, mechanism: auto or l-grr, or "
                    "wait for more devices",
                )

    def _choose(self, options: list[Records]) -> tuple[Question, ...]:
        """Of each attribute's mechanisms the one that ranks first, by variance at frequency 0 if nothing else differs.

        Attributes are independent of each other, except under `guarantee: attribute`, where a choice changes what all
        may spend, and in how well the true attribute is hidden. So attributes are visited in turn, in order, and one
        switches only if the rank of all of them together improves. This terminates under every guarantee, always with
        the same result.
        """
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
                start[place] = min(asked, key=lambda r: pair_information(asked[r][place], self.survey.longitudinal))
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
            reports = evidence(questions, self.discloses, self.survey.longitudinal, self.survey.one_in)
            linking = sum(report.links(self._crowd) for report in reports)
        if self.use == "rs+rfd" and self._auto:
            shown = max(shown, round(len(questions) * attribute_guess(questions, same=False), 9))
        return linking, shown, _total_variance(questions)

    @property
    def _auto(self) -> bool:
        """Whether `auto` chooses for any attribute; the literature's choosers go by the error alone."""
        return any(attribute.mechanism == AUTO.name for attribute in self._asked)

    @property
    def _crowd(self) -> int | None:
        """The number of devices among which `auto` must hide one, if it is declared."""
        return self.survey.devices if self._auto else None

    def _ask(self, records: Records) -> tuple[Question, ...]:
        """All attributes, with these mechanisms."""
        pairs = list(zip(self._asked, records, strict=True))
        if not self._hides:
            asked = (self._ask_truly(*pair) for pair in pairs)
            return tuple(replace(question, drawn=drawn) for question, drawn in zip(asked, self._drawn, strict=True))

        def ask(budgets: Budgets) -> tuple[Question, ...]:
            return tuple(self._ask_among_fakes(attribute, record, budgets) for attribute, record in pairs)

        return ask(self._hidden_budgets(ask))

    def _hidden_budgets(self, ask: Ask) -> Budgets:
        """What the sampled attribute may spend under each guarantee (PROTOCOLS 4)."""
        inf, one = declared = self._declared
        if self.survey.guarantee == "attribute":
            return calibrated(declared, ask)
        if self.survey.guarantee == "published":
            count = len(self.survey.attributes)
            return amplified(inf, count), None if one is None else amplified(one, count)
        return declared

    def alternatives(self, question: Question) -> dict[str, Question]:
        """This attribute with every mechanism that it could use, the others as they are; itself included."""
        place, found = self.survey.index(question.name), {}
        for record in self._possible(question.attribute):
            records = [other.record for other in self.questions]
            records[place] = record
            with suppress(InfeasibleError):
                found[record.name] = self._ask(records)[place]
        return found

    def _options(self, attribute: Attribute) -> Records:
        """The mechanisms to choose from: the one the survey names, or those that its chooser may choose."""
        name, possible = attribute.mechanism, self._possible(attribute)
        if name in CHOOSERS:
            hashed = isinstance(attribute, Crossed) and self._crowd is not None  # its bits may link, its hash may not
            return [r for r in possible if r.may_be_chosen(name, self.use) or (hashed and r is RECORDS["loloha"])]
        record = RECORDS[name]
        if record.needs_order and not attribute.ordered:
            raise SurveyError(
                f"attribute {attribute.name!r}: {name} needs an order", "declare a range, or choose another mechanism"
            )
        if record not in possible:
            raise SurveyError(
                f"attribute {attribute.name!r}: mechanism {name!r} does not fit this survey's solution and budgets",
                f"possible here: auto, {', '.join(record.name for record in possible)}",
            )
        return [record]

    def _possible(self, attribute: Attribute) -> Records:
        """Every mechanism that fits this attribute under the survey's solution and budgets."""
        return [record for record in fitting(self.use) if record.takes(attribute.k, attribute.ordered)]

    def _ask_truly(self, attribute: Attribute, record: MechanismRecord) -> Question:
        parts = len(self.survey.attributes) if self.survey.solution == "spl" else 1
        inf, one = self._declared
        budget = Budget(inf / parts, None if one is None else one / parts, self.survey.calibration)
        return Question(attribute, build(record.name, attribute.k, budget, attribute.parameter), record, budget)

    def _ask_among_fakes(self, attribute: Attribute, record: MechanismRecord, budgets: Budgets) -> Question:
        fakes, budget = record.fakes, Budget(*budgets, self.survey.calibration)
        assert fakes is not None, f"{record.name} does not fake"
        mechanism = build(fakes.one_round if budget.one is None else fakes.two_rounds, attribute.k, budget)
        fake = None if fakes.kind == "zero" else _distribution(attribute)
        return Question(attribute, mechanism, record, budget, 1 / len(self.survey.attributes), fake)

    @cached_property
    def _drawn(self) -> tuple[Fraction, ...]:
        """The chance that a report answers each question: certain, where it answers all."""
        shares, count = self.survey.shares, len(self._asked)
        if shares is not None:
            return tuple(Fraction(share) / sum(map(Fraction, shares)) for share in shares)
        return (Fraction(1, count if self.discloses else 1),) * count

    @property
    def _hides(self) -> bool:
        return self.use in ("rs+fd", "rs+rfd")

    @property
    def _declared(self) -> Budgets:
        if self.survey.eps is not None:
            return self.survey.eps, None
        assert self.survey.eps_inf is not None
        return self.survey.eps_inf, self.survey.eps_1


def _total_variance(questions: tuple[Question, ...]) -> float:
    """Of all affine channels; a matrix is never one of several options."""
    channels = [question.channel for question in questions]
    return sum(variance_at_zero(channel) for channel in channels if isinstance(channel, SupportChannel))


def _distribution(attribute: Attribute) -> Floats:
    if attribute.prior is None:
        return np.full(attribute.k, 1 / attribute.k)
    return np.array([attribute.prior[value] for value in attribute.values])
