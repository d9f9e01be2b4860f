"""The methods that are compared: a solution, a mechanism, and on whose terms.

Each exists twice where that makes a difference: on our terms (exact calibration, a guarantee that holds), and as the
papers have it (their second round of L-GRR, their amplification of RS+FD), to reproduce their tables (PROTOCOLS 3, 4).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from analytics.evaluation.truth import Truth
from protocols.errors import SettingsError, SurveyError
from protocols.mechanisms import RECORDS, Calibration, MechanismRecord, Use, fitting
from protocols.survey import Solution, Survey

Guarantee = Literal["tuple", "attribute", "published"]


@dataclass(frozen=True)
class Method:
    """One way to collect. `label` is the mechanism as the papers write it, `mechanism` as a survey does."""

    solution: Solution
    label: str
    mechanism: str
    longitudinal: bool
    calibration: Calibration = "exact"
    guarantee: Guarantee = "tuple"
    one_in: int = 1

    @property
    def name(self) -> str:
        return f"{self.solution}[{self.label}]"

    @property
    def terms(self) -> str:
        """On whose terms, in a word: exact, or published; for what hides an attribute, its guarantee.

        >>> METHODS[0].terms, METHODS[0].as_published().terms, METHODS[-1].taking_turns(7).terms
        ('exact', 'published', 'tuple, one in 7')
        """
        terms = self.guarantee if self.hides else self.calibration
        return terms if self.one_in == 1 else f"{terms}, one in {self.one_in}"

    @property
    def hides(self) -> bool:
        """Whether one attribute is true and the others are fake."""
        return self.solution.startswith("rs")

    @property
    def republished(self) -> bool:
        """Whether the papers' terms differ from ours."""
        return self.hides or (self.longitudinal and any(record.published_differs for record in self._candidates()))

    def _candidates(self) -> list[MechanismRecord]:
        """The mechanism itself, or what it may choose, with two rounds."""
        own = RECORDS.get(self.mechanism)
        return [own] if own else [r for r in fitting("two rounds") if r.may_be_chosen(self.mechanism, "two rounds")]

    def as_published(self) -> Method:
        return replace(self, calibration="published", guarantee="published" if self.hides else "tuple")

    def under(self, guarantee: Guarantee) -> Method:
        """With another guarantee, where that means something."""
        return replace(self, guarantee=guarantee) if self.hides else self

    def taking_turns(self, one_in: int) -> Method:
        """With devices that answer in one of so many periods, where nothing is memoised."""
        return self if self.longitudinal else replace(self, one_in=one_in)

    @property
    def ordered(self) -> bool:
        """Whether the mechanism uses the order of the values. The evaluation takes them in the order of their index."""
        return self.mechanism in RECORDS and RECORDS[self.mechanism].needs_order

    @property
    def placed(self) -> bool:
        """Whether the mechanism is for places on a grid: then `eps` is what it may reveal within their radius."""
        return self.mechanism in RECORDS and RECORDS[self.mechanism].needs_grid

    def survey(self, truth: Truth, eps: float, alpha: float) -> Survey:
        """A survey that asks all attributes this way, under made-up names: the users' own need not fit a survey."""
        budgets = {"eps_inf": eps, "eps_1": alpha * eps} if self.longitudinal else {"eps": eps}
        levels = {name.replace("eps", "geo").removesuffix("_1"): budget for name, budget in budgets.items()}
        budgets = ({} if self.placed else budgets) | ({} if self.longitudinal else {"one_in": self.one_in})
        terms = {"solution": self.solution, "calibration": self.calibration, "guarantee": self.guarantee}
        names = {name: f"a{place}" for place, name in enumerate(truth.sizes)}
        attributes = [
            self._attribute(truth, place, levels) for place, name in enumerate(names) if name not in truth.crosses
        ]
        pairs = [{"of": [names[one] for one in pair], "mechanism": self.mechanism} for pair in truth.crosses.values()]
        when = {"start": "2026-01-01T00:00:00Z", "period": "1d"}
        return Survey.model_validate(
            {"id": "evaluation", **when, **budgets, **terms, "attributes": attributes, "crosses": pairs}
        )

    def _attribute(self, truth: Truth, place: int, levels: dict[str, float]) -> dict[str, Any]:
        name, k = list(truth.sizes.items())[place]
        if self.placed:
            if name not in truth.places:
                raise SurveyError(f"attribute {name!r} has no grid", "choose attributes with one, or other methods")
            return {"name": f"a{place}", "mechanism": self.mechanism, **truth.places[name].terms(levels)}
        values = [str(value) for value in range(k)]
        asked: dict[str, Any] = {"name": f"a{place}", "mechanism": self.mechanism}
        asked |= {"range": {"last": k - 1}} if self.ordered else {"values": values}
        if self.solution == "rs+rfd":
            asked["prior"] = dict(zip(values, truth.priors[name].tolist(), strict=True))
        return asked


def _two_rounds(solution: Solution) -> list[Method]:
    names = ["allomfree", *_names("two rounds")]
    return [Method(solution, name, name, longitudinal=True) for name in names]


def _one_shot(solution: Solution, use: Use) -> list[Method]:
    return [Method(solution, name, name, longitudinal=False) for name in [*_names(use), "adp"]]


def _memoised_fakes(solution: Literal["rs+fd", "rs+rfd"]) -> list[Method]:
    """What auto may choose, under the name of its two-round form: the papers have RS+FD for one report only."""
    found = []
    for record in fitting(solution):
        if record.fakes is not None and record.may_be_chosen("auto", solution):
            label = record.fakes.two_rounds + record.name.removeprefix(record.fakes.one_round)
            found.append(Method(solution, label, record.name, longitudinal=True))
    return found


def _placed(use: Use) -> list[Method]:
    """Mechanisms for places have one name for one round and for two; here the latter are told apart by an l."""
    memo = use == "two rounds"
    names = [record.name for record in fitting(use, placed=True)]
    return [Method("smp", f"l-{name}" if memo else name, name, memo) for name in names]


def _names(use: Use) -> list[str]:
    return [record.name for record in fitting(use)]


METHODS: tuple[Method, ...] = (
    *_placed("two rounds"),
    *_two_rounds("smp"),
    *_two_rounds("spl"),
    *_memoised_fakes("rs+fd"),
    *_memoised_fakes("rs+rfd"),
    *_placed("one-shot"),
    *_one_shot("smp", "one-shot"),
    *_one_shot("spl", "one-shot"),
    *_one_shot("rs+fd", "rs+fd"),
    *_one_shot("rs+rfd", "rs+rfd"),
)


def choose(words: Sequence[str], placed: bool = False) -> list[Method]:
    """The methods that any of these words fits: `longitudinal`, `one-shot`, a solution, a mechanism, or a full name.

    Methods for ordered values are chosen only by mechanism or full name: values need not have an order. So are those
    for places, unless the attributes are `placed`.

    >>> [method.name for method in choose(["l-osue", "rs+rfd[grr]"])]
    ['smp[l-osue]', 'spl[l-osue]', 'rs+rfd[grr]']
    >>> [method.name for method in choose(["geometric", "l-geometric"])]
    ['smp[l-geometric]', 'spl[l-geometric]', 'smp[geometric]', 'spl[geometric]']
    >>> [method.name for method in choose(["longitudinal"], placed=True)][:2]
    ['smp[l-geo-grid]', 'smp[l-geo-tight]']
    >>> choose(["l-grrr"])
    Traceback (most recent call last):
    protocols.errors.SettingsError: no method is called 'l-grrr' (say longitudinal, one-shot or all, ...
    """
    by_word: dict[str, list[Method]] = {}
    for method in METHODS:
        kind = "longitudinal" if method.longitudinal else "one-shot"
        groups = () if method.ordered or (method.placed and not placed) else ("all", kind, method.solution)
        for word in (*groups, method.label, method.name):
            by_word.setdefault(word, []).append(method)
    for word in words:
        if word not in by_word:
            known = dict.fromkeys(part for method in METHODS for part in (method.solution, method.label))
            hint = f"say longitudinal, one-shot or all, one of {', '.join(known)}, or both, as in smp[l-grr]"
            raise SettingsError(f"no method is called {word!r}", hint)
    return [method for method in METHODS if any(method in by_word[word] for word in words)]
