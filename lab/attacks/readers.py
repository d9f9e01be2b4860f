"""Readers of published tables: what the counts of a crowd tell about one of its devices (docs/audit.md, section 10).

A reader looks along a direction: what an answer of the first value adds on average, less what one of the last value
adds. Paths of people follow from tables of areas: from one period to the next as many people stay as the numbers in
each area allow; the others move.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import exp

import numpy as np

from analytics.estimation import estimate, norm_sub
from lab.attacks.accuracy import asked
from lab.attacks.coins import loss_figure
from lab.attacks.forging import answering
from lab.attacks.reidentify import Table, own_respondent
from lab.attacks.report import Figure, Trials, plain
from protocols.arrays import Counts, Devices, Floats, Mask, Values, Whole
from protocols.mechanisms import Flip, MatrixRound, SupportChannel
from protocols.privacy import central_loss
from protocols.question import Question
from protocols.randomness import Keyring
from protocols.respondent import Respondent
from protocols.scheme import Scheme
from protocols.survey import Survey
from stream_app.counting import Statistics
from stream_app.finals import Final, NotCounted

GAPS = np.array([1, 2], dtype=np.uint16)  # that of the others, and that of the device that is alone
TARGETS = 10  # of each pair of crowds
SIZE = 100  # answers in a table: of ten times as many, coins would prove nothing
CROWDS, FEWER, PERIODS = 2000, 200, 7  # fewer crowds where counting takes as long for 100 answers as for a million
AREAS = 40  # crowds whose paths are looked for
MOVES = 0.2  # the share of people who move from a period to the next
DELTA = 0.01  # the chance beyond a loss that so many coins can see


def memo_sent(question: Question) -> Question:
    """The question without round 2: its answers are the memos. The control of what round 2 hides."""
    return replace(question, mechanism=replace(question.mechanism, second=None))


@dataclass(frozen=True)
class Crowds:
    """Many crowds of the same size that answer one question; devices are numbered crowd by crowd."""

    respondent: Respondent
    question: Question
    size: int
    number: int

    @property
    def devices(self) -> Devices:
        return np.arange(self.number * self.size, dtype=np.uint64)

    def members(self, place: int) -> Devices:
        """The device at this place of each crowd."""
        return self.devices[place :: self.size]

    def tables(self, period: int, devices: Devices, values: Values, question: Question | None = None) -> Counts:
        """What these devices add to what is published of a period: `[crowd, value]`."""
        question = question or self.question
        answers = self.respondent.answers(question, devices, period, values)
        return question.mechanism.encoding.count(answers, self._crowds(devices), self.number)

    def expected(self, devices: Devices, values: Values) -> Floats:
        """What a reader expects these devices to add who knows their values, and their memos if there are any."""
        crowds, k = self._crowds(devices), self.question.k
        answers = np.bincount(crowds, minlength=self.number)[:, None]
        if self.respondent.scheme.survey.longitudinal:
            memos, second = self.tables(0, devices, values, memo_sent(self.question)), self.question.mechanism.second
            return memos.astype(float) if second is None else _through(second, memos, answers)
        truth = np.bincount(crowds * k + values, minlength=self.number * k).reshape(-1, k)
        return _through(self.question.channel, truth, answers)

    def _crowds(self, devices: Devices) -> Whole:
        return devices.astype(np.int64) // self.size


def _through(noise: object, sent: Whole | Floats, answers: Whole | int) -> Floats:
    """How many answers support each value on average, after a round or a whole channel."""
    if isinstance(noise, MatrixRound):
        return np.asarray(sent @ noise.matrix)
    assert isinstance(noise, SupportChannel | Flip), "places have no such sums"
    floor = noise.q if isinstance(noise, Flip) else noise.floor
    return np.asarray(floor * answers + noise.gain * sent)


def coin_scores(crowds: Crowds, coins: Mask) -> Floats:
    """The evidence for heads about each of `coins[period, crowd]`, from one table each.

    In each period another device of a crowd has the first value or the last; in all other periods it has the one in the
    middle, as all others have. Given all memos, tables are independent: round 2 is drawn anew.
    """
    usual = np.full(len(crowds.devices), crowds.question.k // 2)
    everybody, found = crowds.expected(crowds.devices, usual), []
    for period, shown in enumerate(coins):
        others = everybody - crowds.expected(crowds.members(period), usual[: crowds.number])
        values = with_coins(crowds, shown, period)
        found.append(scores(crowds.question, crowds.tables(period, crowds.devices, values) - others))
    return np.array(found)


def scores(question: Question, added: Floats | Whole) -> Floats:
    """The evidence that a device has the first value, and not the last, if it and noise added this to a table."""
    first, last = _through(question.channel, np.eye(question.k), 1)[[0, -1]]
    return np.asarray((added - (first + last) / 2) @ (first - last))


def with_coins(crowds: Crowds, coins: Mask, place: int = 0) -> Whole:
    """Values of all devices: those at this place of each crowd have the first or the last one."""
    values = np.full(len(crowds.devices), crowds.question.k // 2)
    values[place :: crowds.size] = np.where(coins, 0, crowds.question.k - 1)
    return values


def right_guesses(scores: Floats, coins: Mask | bool) -> Trials:
    """How often the sign of a score tells a coin; of several scores about a trial `[.., trial]` the mean.

    Ties are shared.
    """
    right = np.atleast_2d(np.where(scores == 0, 0.5, (scores > 0) == coins)).mean(axis=0)
    return Trials(float(right.sum()), len(right))


def differencing(crowds: Crowds, coins: Mask, question: Question) -> Trials:
    """Everybody reports in two periods with the same values, the first device of each crowd only in the second.

    The difference of both tables is its answer, and the change of the others' noise. Without round 2 there is none.
    """
    values, others = with_coins(crowds, coins), crowds.devices % np.uint64(crowds.size) > 0
    before = crowds.tables(0, crowds.devices[others], values[others], question)
    after = crowds.tables(1, crowds.devices, values, question)
    return right_guesses(scores(crowds.question, after - before), coins)


def alone_in_its_gap(crowds: Crowds, coins: Mask, release: Scheme) -> tuple[Trials, Trials]:
    """The first device of each crowd has a gap that nobody else has: what finals tell, and what its report tells.

    Where its row of answers is published, a reader has its report; otherwise the sum over all gaps.
    """
    name, values, first = crowds.question.name, with_coins(crowds, coins), crowds.members(0)
    own, found = values[:: crowds.size], []
    reports, sums = crowds.tables(0, first, own), crowds.tables(0, crowds.devices, values)
    others = crowds.expected(crowds.devices, values) - crowds.expected(first, own)
    for report, table, known in zip(reports, sums, others, strict=True):
        counted = Statistics(GAPS, np.array([crowds.size - 1, 1]), np.array([table - report, report]))
        released = Final.of(release, 0, dict.fromkeys([*release.kinds, name], counted), NotCounted()).counts
        n, N = released[name].n, released[name].N
        by_gap = (n == 1).any() and N[n > 1].any()
        found.append(N[n == 1][0] if by_gap else released[name].supports - known)
    told, report_tells = (scores(crowds.question, np.array(added)) for added in (found, reports))
    return right_guesses(told, coins), right_guesses(report_tells, coins)


def membership(crowds: Crowds, values: Whole, periods: int) -> tuple[Trials, Trials]:
    """Which of two crowds a target is in, if a random device is in its place in the other one; and without noise.

    The attack of Pyrgelis, Troncoso and De Cristofaro (2018), of a reader who knows all others: it names the crowd in
    which, in all periods, more answers support the target's value beyond what is expected of the others. Targets of one
    pair of crowds are one trial: their tables are the same.
    """
    sums = np.sum([crowds.tables(period, crowds.devices, values) for period in range(periods)], axis=0)
    noise, half = sums - periods * crowds.expected(crowds.devices, values), crowds.number // 2
    ahead, differ, pairs = [], [], np.arange(half)
    for place in range(TARGETS):
        own = values[place :: crowds.size]
        beyond, targets = noise + periods * crowds.expected(crowds.members(place), own), own[:half]
        ahead.append(beyond[pairs, targets] - beyond[pairs + half, targets])
        differ.append((targets != own[half : 2 * half]).astype(float))
    return right_guesses(np.array(ahead), True), right_guesses(np.array(differ), True)


def recovered(people: Whole) -> Whole:
    """Paths `[period, person]` that fit numbers of people `[period, area]`, with as few moves as possible.

    >>> recovered(np.array([[2, 1], [1, 2]])).tolist()
    [[0, 0, 1], [0, 1, 1]]
    """
    paths = [np.repeat(np.arange(people.shape[1]), people[0])]
    for there in people[1:]:
        left, after = there.copy(), np.full(len(paths[0]), -1)
        for area, stay in enumerate(np.minimum(there, np.bincount(paths[-1], minlength=len(there)))):
            after[np.flatnonzero(paths[-1] == area)[:stay]] = area
            left[area] -= stay
        after[after < 0] = np.repeat(np.arange(len(there)), left)
        paths.append(after)
    return np.array(paths)


def whole_people(shares: Floats, people: int) -> Whole:
    """Shares as numbers of people: where the sum of shares passes the middle of a person, it is one of that value.

    >>> whole_people(np.array([0.5, 0.34, 0.16]), 10).tolist()
    [5, 3, 2]
    """
    ends = np.cumsum(shares) / shares.sum() * people
    return np.asarray(np.bincount(np.searchsorted(ends, np.arange(people) + 0.5), minlength=len(shares)))


def positions_right(paths: Whole, truth: Whole) -> float:
    """The share of positions that are right under the best matching of paths to people."""
    from scipy.optimize import linear_sum_assignment  # takes over a second to import

    same = (paths[:, :, None] == truth[:, None, :]).sum(axis=0)
    return float(same[linear_sum_assignment(-same)].sum() / truth.size)


@dataclass(frozen=True)
class Reading:
    """Tables of crowds with `SIZE` answers each, of devices with the values of `people`."""

    survey: Survey
    people: Table
    alpha: float
    seed: int

    def run(self, keyring: Keyring, alpha: float) -> Iterator[Figure]:
        """All attacks on the attribute about which tables tell most; `alpha` is for what coins prove."""
        scheme = Scheme(self.survey.model_copy(update={"presence_epsilon": None}))  # noise on counts would hide more
        alone = [question for question in asked(scheme) if not question.axes]
        if not alone:
            return
        question = max(alone, key=lambda question: table_loss(scheme, question, SIZE, DELTA))
        crowds = self.crowds(question, keyring)
        coins = self._random(0).random((PERIODS + 1, crowds.number)) < 0.5
        knows = f"tables of {SIZE} answers, everybody else's memos; but for a chance of {DELTA:g}"
        told, promise = coin_scores(crowds, coins[1:]).ravel(), table_loss(scheme, question, SIZE, DELTA)
        target = f"{question.name} in tables"
        yield loss_figure(target, knows, told, coins[1:].ravel(), promise, alpha, delta=DELTA, exact=False)
        yield self._figure(question, "membership", PERIODS, *membership(crowds, self._values(crowds), PERIODS))
        if self.survey.longitudinal:
            both = differencing(crowds, coins[0], question), differencing(crowds, coins[0], memo_sent(question))
            yield self._figure(question, "differencing: two periods, a device in the second alone", 2, *both)
        if self.survey.horizon > 1 and self.survey.presence_epsilon is None:
            both = alone_in_its_gap(crowds, coins[0], scheme)
            yield self._figure(question, "a device that is alone in its gap", 1, *both)
        for area in (question for question in alone if question.role == "area"):
            luck, right, control = self.paths(self.crowds(area, keyring))
            knows = f"paths of people, {MOVES:.0%} of whom move in a period"
            yield self._figure(area, knows, PERIODS, right, control, luck.share)

    def crowds(self, question: Question, keyring: Keyring) -> Crowds:
        respondent = own_respondent(self.survey, f"audit.readers.{question.name}", keyring)
        number = FEWER if question.record.fresh else CROWDS
        return Crowds(respondent, question, SIZE, number)

    def paths(self, crowds: Crowds) -> tuple[Trials, Trials, Trials]:
        """Positions that are right if no table is seen, from the published tables, and from exact ones."""
        random, truth = self._random(2), [self._values(crowds)]
        for _ in range(PERIODS - 1):
            goes = random.random(len(truth[0])) < MOVES
            truth.append(np.where(goes, random.permutation(truth[0]), truth[-1]))
        tables = [crowds.tables(period, crowds.devices, values) for period, values in enumerate(truth)]
        shares, found, size = norm_sub(estimate(tables, crowds.size, crowds.question.channel).value), [], crowds.size
        for place in range(AREAS):
            own = np.array(truth)[:, place * size : (place + 1) * size]
            exact = np.array([np.bincount(row, minlength=crowds.question.k) for row in own])
            stays = np.tile(whole_people(exact.mean(axis=0), size), (PERIODS, 1))
            seen = np.array([whole_people(row, size) for row in shares[:, place]])
            found.append([positions_right(recovered(people), own) for people in (stays, seen, exact)])
        luck, told, control = (Trials(float(right), AREAS) for right in np.sum(found, axis=0))
        return luck, told, control

    def _values(self, crowds: Crowds) -> Whole:
        """Of everybody in all crowds, like those of the people."""
        return self._random(1).choice(np.asarray(self.people[crowds.question.name]), len(crowds.devices))

    def _random(self, purpose: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, 41, purpose])

    def _figure(
        self, question: Question, knows: str, periods: int, told: Trials, control: Trials, luck: float | None = 0.5
    ) -> Figure:
        facts = {"attack": "read", "target": question.name, "knows": f"{knows}; tables of {SIZE} answers"}
        return told.figure(self.alpha, reports=periods, luck=luck, best=control.share, exact=False, **facts)


def table_loss(scheme: Scheme, question: Question, answers: int, delta: float) -> float:
    """The loss of one period's tables of so many answers: the central figure, or that of a report."""
    found = central_loss(scheme.guarantees, {question.name: [answers]}, delta=delta)
    return found.by_attribute.get(question.name, scheme.guarantees.per_attribute(1)[scheme.place(question)])


def readings(scheme: Scheme, devices: int) -> Iterator[Figure]:
    """A reader of tables who knows everybody else guesses which of two values a device has."""
    promise = scheme.survey.central
    for question in asked(scheme):
        loss, delta = scheme.guarantees.per_attribute(1)[scheme.place(question)], 0.0
        knows = "tables by gap, or live: a single report"
        if promise is not None:
            answers, delta = answering(scheme, question, devices), promise.delta
            loss, knows = table_loss(scheme, question, answers, delta), f"tables of {answers:,} answers"
        chance = 1 / (1 + exp(-loss)) + delta
        yield plain("read", question.name, f"everybody else's memos; {knows}", 1, chance, luck=0.5, exact=False)
