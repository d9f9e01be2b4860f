"""A survey, compiled: which mechanism asks each attribute, with which probabilities, and what its reports mean.

All probabilities are derived here; no caller computes a p or a q (PROTOCOLS 4 has the solutions).
"""

import json
from collections.abc import Sequence
from functools import cached_property
from hashlib import sha256

from hearsay_device.draws import bits_of, hashed
from protocols.errors import InfeasibleError, SurveyError
from protocols.mechanisms.encodings import table_of
from protocols.privacy.crowd import evidence, hidden_bits
from protocols.privacy.guarantees import Guarantees
from protocols.privacy.presence import PresenceNoise, presence_noise
from protocols.question import Question
from protocols.randomness.sampling import Table, digest, uniform
from protocols.scheme.choosing import Choosing
from protocols.survey.model import Survey

PRESENCE_ONLY = ""  # stands for an attribute's name where a report answers none; no attribute has it


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
        self.choosing = Choosing(survey)
        try:
            self.questions = self.choosing.chosen()
        except InfeasibleError as error:
            raise SurveyError(f"survey {survey.id!r}: {error.message}", error.hint) from None
        self.discloses = self.choosing.discloses
        """Whether a report answers only the sampled attribute."""
        self.sampling = survey.solution != "spl" and len(survey.attributes) > 1
        """Whether each device answers truthfully about one attribute only, drawn once for life."""
        self.takes_turns = survey.one_in > 1
        """Whether a device answers in some periods only, and reports nothing but its presence in the others."""
        self.last_period = survey.calendar.last
        """The last period that there is."""
        self.visits, self.ahead = survey.visits, survey.ahead  # asked for each batch of reports
        names = [question.name for question in self.questions]
        self.kinds = (*(names if self.discloses else names[:1]), *([PRESENCE_ONLY] if self.takes_turns else []))
        """What reports are counted by: each belongs to exactly one kind, named after an attribute that it answers.

        Under smp there is a kind for each attribute, otherwise one that has the first attribute's name. Where devices
        take turns, reports that answer nothing are a kind of their own.
        """
        answers = [(name,) for name in names] if self.discloses else [tuple(names)]
        self.forms = frozenset([*answers, *([()] if self.takes_turns else [])])
        """Which attributes one report may answer: all in order, or any one, or none where devices take turns."""
        which = "exactly one of its attributes" if self.discloses else "all of its attributes, in order"
        self.forms_in_words = f"answers {which}" + (", or none of them" if self.takes_turns else "")
        """The same for people: what a report of this survey does."""
        self.answer_bytes = {question.name: question.mechanism.encoding.answer.bytes for question in self.questions}
        """How many bytes an answer to each attribute has, in the survey's order."""
        self._places = {name: place for place, name in enumerate(names)}
        self._refuse_linking_crosses()

    @cached_property
    def terms(self) -> bytes:
        """The resolved terms: all that a device must know to answer, as canonical JSON (docs/device-protocol.md).

        They have the declared terms, the mechanism of each attribute, the numbers that its tables follow from, and
        digests of all integers that devices draw with.
        """
        sampled = digest(self.sampled(range(len(self.questions))).integers) if self.sampling else None
        resolved = {
            "version": self.survey.terms_version,
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
        return self.digest[:32]

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of the resolved terms, 64 hexadecimal digits."""
        return sha256(self.terms).hexdigest()

    @property
    def pin(self) -> str:
        """What an app compares terms with: all 64 digits, in versions 1 and 2 the fingerprint.

        32 digits are not enough against who writes the terms: two texts with equal digits are found in 2^64 tries.
        """
        return self.digest if self.survey.version == 3 else self.fingerprint

    @property
    def names(self) -> dict[str, str]:
        """By what its terms are known: the fingerprint, and the pin where that is something else."""
        return {"fingerprint": self.fingerprint} | ({} if self.pin == self.fingerprint else {"pin": self.pin})

    @property
    def signed(self) -> bytes:
        """What an author signs (docs/device-protocol.md): in version 3 it says what is signed, and for which survey."""
        if self.survey.version < 3:
            return self.fingerprint.encode()
        return f"hearsay survey terms 3\n{self.survey.id}\n{self.pin}".encode()

    def sampled(self, order: Sequence[int]) -> Table:
        """By which devices draw their question: evenly, or by the survey's shares. Questions are in this order."""
        shares = self.survey.shares
        return uniform(len(order)) if shares is None else table_of(tuple(shares[place] for place in order))

    @cached_property
    def by_id(self) -> list[int]:
        """The places of the questions, in the order of their ids."""
        return sorted(range(len(self.questions)), key=lambda place: self.questions[place].id)

    @cached_property
    def memo_ids(self) -> dict[str, str]:
        """By the name of a question, what its memos are keyed by: the question, or with fakes the whole tuple."""
        whole = hashed("tuple", *sorted(question.id for question in self.questions))
        hides = self.survey.solution in ("rs+fd", "rs+rfd")
        return {question.name: whole if hides else question.id for question in self.questions}

    @cached_property
    def sampled_id(self) -> str:
        """What the draw of a device's question is keyed by: all questions, and their shares."""
        return hashed("sampled", *self._asked_and_shares)

    @cached_property
    def turn_id(self) -> str:
        """What the draw of a device's turn is keyed by."""
        return hashed("turn", str(self.survey.one_in), *self._asked_and_shares)

    @property
    def _asked_and_shares(self) -> list[str]:
        shares = self.survey.shares or ()
        written = [bits_of(share) for share in shares] or [""] * len(self.questions)
        return sorted(f"{question.id} {share}" for question, share in zip(self.questions, written, strict=True))

    def answering_share(self, question: Question) -> float:
        """The share of all reports that answer a question."""
        return float(question.drawn / self.survey.one_in)

    @cached_property
    def guarantees(self) -> Guarantees:
        """What these questions reveal."""
        return Guarantees(self.survey, self.questions, self.presence)

    @cached_property
    def presence(self) -> PresenceNoise | None:
        """The noise on what is published about presence; None where it is exact."""
        epsilon = self.survey.presence_epsilon
        if epsilon is None:
            return None
        return presence_noise(epsilon, self.survey.released, len(self.kinds), self.questions, self.discloses)

    def place(self, question: Question) -> int:
        """The place of a question among all of them."""
        return self._places[question.name]

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
