"""What terms reveal, exactly or more than that, and what a device allows (docs/device-protocol.md, "Losses")."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import product
from math import comb, expm1, inf, isfinite, log, log1p, log2
from operator import mul
from typing import Any, Callable, NamedTuple

from hearsay_device.clock import day_of
from hearsay_device.draws import Flip, Matrix
from hearsay_device.errors import refuse
from hearsay_device.presence import chance
from hearsay_device.questions import Question
from hearsay_device.terms import Terms, read_terms

SLACK = 1 + 1e-9
ROUNDING = 2**-62  # what two cuts may add to or take from a probability
NEAR = 500.0  # metres: what a question about places tells is counted for two positions so far apart
YEAR, WEEK = 365, 7  # days
MOST_OF_YEAR = 0.75  # of the limit `year`, for one survey


def loss(question: Question, t: float, combined: Callable[[list[float]], float] = sum) -> float:
    """Between any two values, or sets, of t linked answers from one memo: 1, or infinity. Max: ordered neighbours."""
    element = _of_elements(question, t, combined)
    return element if question.several == 1 or question.bits else log1p(expm1(element) / question.several)


def _of_elements(question: Question, t: float, combined: Callable[[list[float]], float] = sum) -> float:
    """The same between two elements of sets: each is drawn with a chance of one in `several`, or less."""
    first, second, grid = question.first, question.second, question.grid
    if question.ordered:
        return max(map(combined, _steps(first, second if t == 1 else None)))
    if question.kind == "plane" and grid is not None:
        rate = min(first.rate, second.rate) if t == 1 and second is not None else first.rate
        return float(rate * grid.apart(NEAR))
    p1, q1 = first.drawn
    p2, q2 = (1.0, 0.0) if second is None else second.drawn  # 1 and 0: the memo itself is sent
    r, s = (q2 / p2) ** t, ((1 - p2) / (1 - q2)) ** t
    named = log((p1 * (1 - r) + r) / (q1 * (1 - r) + r))
    if not question.bits:
        return named
    contradicted = -log((p1 * (s - 1) + 1) / (q1 * (s - 1) + 1))
    return max(named, contradicted) if question.size == 1 else named + contradicted


def cost(question: Question, count: int) -> float:
    """All memos of `count` cells, between histories that are the same up to renaming the cells (PROTOCOLS 3 and 5)."""
    if question.ordered:
        places = [place // 2 for place in range(2 * question.k)]  # each value once in either history
        return loss(question, inf, max) * (sum(places[len(places) - count :]) - sum(places[:count]))
    if question.kind == "buckets" and question.size < question.k:
        p, q = question.first.drawn
        return min(count, question.size) * log(p * (1 - q) / (q * (1 - p)))
    return loss(question, inf) if count == 1 else count * _of_elements(question, inf)


def link(question: Question) -> float:
    """What one more answer tells whoever knows that it is the same device's, whatever its history."""
    second, grid = question.second, question.grid
    if second is None:
        return inf
    if question.ordered:
        return max(map(sum, _steps(second, None)))
    if question.kind == "plane" and grid is not None:
        return float(second.rate * grid.apart(inf))
    p, q = second.drawn
    return question.size * max(log(p / q), log((1 - q) / (1 - p))) if question.bits else log(p / q)


def report_loss(terms: Terms) -> float:
    """One report, between any two histories. Losses of attributes that are all answered add up."""
    return (sum if terms.solution == "spl" else max)([loss(question, 1) for question in terms.questions])


def require_within_budgets(terms: Terms) -> None:
    """Refuse terms whose numbers reveal more than the budgets that they declare."""
    placed = [question for question in terms.questions if question.kind == "plane"]
    fits = [each.first.rate <= (each.sources[0].rates[1] or each.sources[0].rates[0] or 0) * SLACK for each in placed]
    for t, budget in zip((1, inf), terms.budgets or ()):
        losses = [loss(question, t, max) for question in terms.questions if question not in placed]
        fits.append((sum if terms.solution == "spl" else max)(losses) <= budget * SLACK)
    if not all(fits):
        refuse("losses", f"survey {terms.id!r}: its numbers reveal more than it declares", "do not answer it")


def shared_bits(one: Question, other: Question) -> float:
    """What two answers to a question that two surveys share have in common, in bits; never too few (PROTOCOLS 9)."""
    m, a, b = one.size, one.second, other.second
    traits = log2(comb(one.k, m)) if one.kind == "buckets" else log2(one.hashes)
    if one.fakes is not None or not (isinstance(a, Flip) and isinstance(b, Flip)):
        return traits + (m if one.bits else log2(m))  # no more than the memo has
    if not one.bits:
        apart = a.q * b.q + (a.q * (b.p - b.q) + b.q * (a.p - a.q)) / m
        same = apart + (a.p - a.q) * (b.p - b.q) / m
        return float(traits + m * same * log2(m * m * same) + m * (m - 1) * apart * log2(m * m * apart))
    ones = one.first.q + (one.first.p - one.first.q) / one.k
    said = [((each.p, each.q), (1 - each.p, 1 - each.q)) for each in (a, b)]  # 1 and 0, of a bit set in the memo or not
    common = 0.0
    for (p, q), (r, s) in product(*said):
        both = ones * p * r + (1 - ones) * q * s
        common += both * log2(both / (ones * p + (1 - ones) * q) / (ones * r + (1 - ones) * s))
    return traits + m * common


@lru_cache(maxsize=64)
def _steps(first: Matrix, second: Matrix | None) -> list[list[float]]:
    """The largest log-ratio of each two neighbours, upwards and downwards; their sum is a bound for any two values."""
    rounds = []
    for each in [first] if second is None else [first, second]:
        rows = [each.row(symbol, each.numbers) for symbol in range(each.size)]
        rounds.append([[entry / total for entry in row] for row, total in zip(rows, map(sum, rows))])
    matrix = rounds[0]
    if second is not None:
        columns = list(zip(*rounds[1]))
        matrix = [[sum(map(mul, row, column)) for column in columns] for row in matrix]
    ways = []
    for pairs in (zip(matrix, matrix[1:]), zip(matrix[1:], matrix)):
        ratios = [[(a - ROUNDING) / (b + ROUNDING) for a, b in zip(*rows) if a > 2 * ROUNDING] for rows in pairs]
        ways.append([log(max(each, default=1.0)) for each in ratios])
    return ways


class Asked(NamedTuple):
    """A question, or a tuple. `fresh`: without memos. `cap`: the most memos of an attribute that it brings about."""

    id: str
    questions: Sequence[Question]
    fresh: bool
    cap: float

    @property
    def constant(self) -> float:
        """All its reports about values that stay as they are; with fresh noise, one of them."""
        return max(loss(question, 1 if self.fresh else inf) for question in self.questions)

    def cost(self, answers: int) -> float:
        """Answers about as many cells of each attribute, or about all that there are."""
        if self.fresh:
            return answers * self.constant
        return max(cost(question, int(min(answers, self.cap, question.states))) for question in self.questions)

    def line(self) -> dict[str, Any]:
        tells = self.constant if self.fresh or self.cap == 1 else sum(map(link, self.questions))
        return {
            "reads": sorted({source.name for question in self.questions for source in question.sources}),
            "fresh": self.fresh, "cap": self.cap, "constant": self.constant, "link": min(tells, 1e300),
            "reserved": 0.0, "answers": 0, "first": None,
        }  # fmt: skip


_Numbers = namedtuple(
    "_Numbers", "report value year week ratio shortest horizon", defaults=(1.1, 3.0, 12.0, 10.0, 0.8, 3600, 31)
)


class Limits(_Numbers):
    """The most that a device reveals, as largest log-ratios, and which surveys it answers at all.

    `report`: one report. `value`: all reports of all surveys about a value of the app that stays as it is, in a year.
    `year`: all that is charged in a year. `week`: the reports of a week, where a credential links them. `ratio`: the
    largest share of what a memo costs that one report of it may cost (1: the memo itself may be sent). `shortest`: of
    periods, in seconds. `horizon`: the longest.
    """

    def __init__(self, *_: float, **__: float) -> None:
        for name, limit in self._asdict().items():
            least = 60 if name == "shortest" else 0
            if not (isinstance(limit, (int, float)) and isfinite(limit) and limit > 0 and limit >= least):
                refuse("settings", f"limits: {name} is {limit}", f"give a finite number above {least}")

    def check_terms(self, terms: Terms) -> None:
        """Refuse terms whose reports would tell more than the limits allow, however few they are."""
        if terms.calendar.period < self.shortest:
            refuse("rules", f"survey {terms.id!r}: its periods are shorter than {self.shortest} s", "do not answer it")
        self._within("horizon", terms.id, terms.horizon, "its horizon is")
        # What one report tells of the memo: above 0.8, whoever links reports sees when a value changed.
        for ratio in [loss(each, 1) / loss(each, inf) for each in terms.questions if terms.longitudinal]:
            self._within("ratio", terms.id, ratio, "the share of a memo that one report tells is")
        self._within("report", terms.id, report_loss(terms), "one report may reveal")

    def check(self, survey: str, ledger: Ledger) -> None:
        """Refuse what would exceed a limit: the ledger is as it would be afterwards."""
        self._within("year", survey, ledger.committed(survey), "its charges of a year are", MOST_OF_YEAR)
        self._within("year", survey, sum(map(ledger.committed, ledger.surveys)), "all charges of a year are")
        for name in ledger.read_by(survey):
            self._within("value", survey, ledger.about(name), f"what is told about {name!r} in a year is")
        if ledger.surveys[survey]["credential"]:
            self._within("week", survey, ledger.week(), "the reports of a week, linked by a credential, tell")

    def _within(self, name: str, survey: str, spent: float, what: str, share: float = 1.0) -> None:
        limit, code = getattr(self, name) * share, "rules" if name in ("horizon", "ratio") else "limit"
        if not spent <= limit * SLACK:
            told = f"{what} {spent:.4g}, more than {limit:g}, the limit `{name}`"
            refuse(code, f"survey {survey!r}: {told}", "do not answer it; or raise the limit, if the person agrees")


class Ledger:
    """What surveys were charged and have reserved, in the document of a device."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document, self.surveys = document, document["surveys"]

    @property
    def day(self) -> int:
        """The last day that the device has lived."""
        return day_of(self.document["lived"])

    def charge(self, survey: str, asked: Asked) -> None:
        """Note one more answer and what it costs. Surveys that share a question have the same memos of it."""
        line, day, shared = self.surveys[survey]["asked"][asked.id], self.day, asked._replace(cap=inf)
        memos = sum(min(each["answers"], each["cap"]) for each in self._sharing(asked.id))
        more = line["answers"] < line["cap"] or asked.fresh
        amount = shared.cost(memos + more) - shared.cost(memos)
        self.document["charges"] = [*self.charges(), [day, survey, asked.id, amount]]
        line["answers"] += 1
        line["first"] = day if line["first"] is None else line["first"]

    def charges(self, days: int = YEAR) -> list[list[Any]]:
        return [each for each in self.document["charges"] if each[0] > self.day - days]

    def committed(self, survey: str) -> float:
        """What a survey was charged in the last year, or has reserved, whichever is more."""
        reserved = sum(float(line["reserved"]) for line in self.surveys[survey]["asked"].values())
        return max(sum(float(amount) for _, of, _, amount in self.charges() if of == survey), reserved)

    def about(self, name: str) -> float:
        """All reports about a value of the app that stays as it is, of questions first charged in the last year."""
        total, constants = 0.0, {}
        for survey, question, line in self._lines():
            if name not in line["reads"]:
                continue
            firsts = [each["first"] for each in self._sharing(question) if each["first"] is not None]
            if line["fresh"]:
                spent = sum(amount for _, *of, amount in self.charges() if of == [survey, question])
                total += max(line["reserved"], spent)
            elif min(firsts) > self.day - YEAR if firsts else line["reserved"]:
                constants[question] = float(line["constant"])
        return total + sum(constants.values())

    def week(self) -> float:
        """What the reports of the last seven days tell whoever can link them by a credential."""
        total = 0.0
        for survey, question, line in self._lines():
            if self.surveys[survey]["credential"]:
                answers = sum(of == [survey, question] for _, *of, _ in self.charges(WEEK))
                held = line["cap"] == 1 and not line["fresh"]  # then all answers tell together what one does
                total += line["link"] * (min(1, answers) if held else answers)
        return total

    def explain(self, limit: float) -> dict[str, Any]:
        """What all reports may tell, for the person whose device it is; `limit` is that of a year."""
        asking: dict[str, list[str]] = {}
        for survey, question, _ in sorted(self._lines(), key=lambda line: line[0]):
            asking.setdefault(question, []).append(survey)
        texts = {survey: joined["terms"] for survey, joined in self.surveys.items() if joined["terms"] is not None}
        terms = {survey: read_terms(text.encode()) for survey, text in texts.items()}
        charges, committed = [amount for *_, amount in self.charges()], sum(map(self.committed, self.surveys))
        return {
            "report": {survey: chance(report_loss(each)) for survey, each in terms.items()},
            "value": {name: chance(self.about(name)) for name in self.read_by(*self.surveys)},
            "year": {"answers": len(charges), "charged": sum(charges), "committed": committed, "limit": limit},
            "answers": sum(line["answers"] for _, _, line in self._lines()),
            "presence": {survey: each.presence.explain() for survey, each in terms.items()},
            "metres": dict.fromkeys(self._placed(terms.values()), NEAR),
            "week": "whoever knows which reports are yours can see that and when your answer changed",
            "shared": [each for each in asking.values() if len(each) > 1],
        }

    @staticmethod
    def _placed(terms: Iterable[Terms]) -> list[str]:
        """The attributes that are asked as places: their chances are for two positions so many metres apart."""
        questions = [question for each in terms for question in each.questions]
        return sorted({question.name for question in questions if question.kind == "plane"})

    def read_by(self, *surveys: str) -> list[str]:
        """The names of the app's values that surveys ask for."""
        return sorted({name for survey, _, line in self._lines() if survey in surveys for name in line["reads"]})

    def _lines(self) -> list[tuple[str, str, dict[str, Any]]]:
        return [(survey, *line) for survey, joined in self.surveys.items() for line in joined["asked"].items()]

    def _sharing(self, question: str) -> list[dict[str, Any]]:
        """The lines of all surveys that ask a question and have memos of it."""
        return [line for _, known, line in self._lines() if known == question and not line["fresh"]]
