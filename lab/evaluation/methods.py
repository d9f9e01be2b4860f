"""The methods that are compared: a solution, a mechanism, and on whose terms.

Each exists twice where that makes a difference: on our terms (exact calibration, a guarantee that holds), and as the
papers have it (their second round of L-GRR, their amplification of RS+FD), to reproduce their tables (PROTOCOLS 3, 4).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from pydantic import ValidationError

from lab.evaluation.places import radius
from lab.evaluation.truth import Truth
from protocols.errors import SettingsError, SurveyError
from protocols.mechanisms import RECORDS, Calibration, Use, fitting
from protocols.survey import Solution, Survey
from protocols.survey_text import Document, explain

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
        own = [r for r in fitting("two rounds") if r.may_be_chosen(self.mechanism, "two rounds")]
        asked = [RECORDS[self.mechanism]] if self.mechanism in RECORDS else own
        return self.hides or (self.longitudinal and any(record.published_differs for record in asked))

    def as_published(self) -> "Method":
        return replace(self, calibration="published", guarantee="published" if self.hides else "tuple")

    def taking_turns(self, one_in: int) -> "Method":
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
        asked = [self._asked(truth, one, levels) | {"name": names[one]} for one in names if one not in truth.crosses]
        pairs = [{"of": [names[one] for one in pair], "mechanism": self.mechanism} for pair in truth.crosses.values()]
        return made_up({"id": "evaluation", **budgets, **terms, "attributes": asked, "crosses": pairs}, names)

    def _asked(self, truth: Truth, name: str, levels: dict[str, float]) -> dict[str, Any]:
        """An attribute as it is asked this way."""
        values = [str(value) for value in range(truth.sizes[name])]
        asked: dict[str, Any] = {"mechanism": self.mechanism}
        if self.placed and name not in truth.places:
            raise SurveyError(f"attribute {name!r} has no grid", "choose attributes with one, or other methods")
        if self.placed:
            place = truth.places[name]
            budgets = {budget: {"level": level, "radius": radius(place)} for budget, level in levels.items()}
            return asked | {"grid": place.grid} | budgets
        prior = dict(zip(values, truth.priors[name].tolist(), strict=True)) if self.solution == "rs+rfd" else None
        return asked | ({"range": {"last": len(values) - 1}} if self.ordered else {"values": values}) | {"prior": prior}


def made_up(terms: dict[str, Any], names: Iterable[str]) -> Survey:
    """A survey that is asked nowhere. What is wrong with it is said with the names that users have."""
    try:
        return Survey.model_validate({"start": "2026-01-01T00:00:00Z", "period": "1d", **terms})
    except ValidationError as error:
        named = Document({"attributes": [{"name": name} for name in names]})
        raise SurveyError(explain(error, named).replace("\n", "; ")) from None


def _methods() -> Iterator[Method]:
    """All methods, longitudinal ones first.

    Mechanisms for places have one name for one round and for two; here the latter are told apart by an l. Memoised
    fakes are those that auto may choose, under the name of their two-round form: the papers have RS+FD for one report
    only.
    """
    plain: tuple[Solution, ...] = ("smp", "spl")
    fakes: tuple[Literal["rs+fd", "rs+rfd"], ...] = ("rs+fd", "rs+rfd")
    yield from (Method("smp", f"l-{r.name}", r.name, longitudinal=True) for r in fitting("two rounds", placed=True))
    for solution in plain:
        for name in ("allomfree", *(record.name for record in fitting("two rounds"))):
            yield Method(solution, name, name, longitudinal=True)
    for faking in fakes:
        for record in fitting(faking):
            if record.fakes is not None and record.may_be_chosen("auto", faking):
                label = record.fakes.two_rounds + record.name.removeprefix(record.fakes.one_round)
                yield Method(faking, label, record.name, longitudinal=True)
    yield from (Method("smp", r.name, r.name, longitudinal=False) for r in fitting("one-shot", placed=True))
    uses: dict[Solution, Use] = {"smp": "one-shot", "spl": "one-shot", "rs+fd": "rs+fd", "rs+rfd": "rs+rfd"}
    for solution, use in uses.items():
        for name in (*(record.name for record in fitting(use)), "adp"):
            yield Method(solution, name, name, longitudinal=False)


METHODS = tuple(method for method in _methods() if method.mechanism != "threshold")
"""All but thresholds: they say no shares of values, which is what is compared."""


def choose(
    words: Sequence[str],
    placed: bool = False,
    guarantee: Guarantee = "tuple",
    one_in: int = 1,
    published: bool = False,
) -> list[Method]:
    """The methods that any of these words fits: `longitudinal`, `one-shot`, a solution, a mechanism, or a full name.

    Methods for ordered values are chosen only by mechanism or full name: values need not have an order. So are those
    for places, unless the attributes are `placed`. `published` adds the papers' variants, where they differ. With
    `one_in`, devices of one-shot methods answer in one of so many periods.

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
    called = {}
    for method in METHODS:
        kind = "longitudinal" if method.longitudinal else "one-shot"
        groups = () if method.ordered or (method.placed and not placed) else ("all", kind, method.solution)
        called[method] = {*groups, method.label, method.name}
    for word in words:
        if not any(word in names for names in called.values()):
            known = dict.fromkeys(part for method in METHODS for part in (method.solution, method.label))
            hint = f"say longitudinal, one-shot or all, one of {', '.join(known)}, or both, as in smp[l-grr]"
            raise SettingsError(f"no method is called {word!r}", hint)
    chosen = []
    for method, names in called.items():
        if names & set(words):
            own = (replace(method, guarantee=guarantee) if method.hides else method).taking_turns(one_in)
            chosen += [own, own.as_published()] if published and own.republished else [own]
    return chosen
