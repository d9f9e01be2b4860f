"""What stands beside the answers (docs/audit.md, section 5): none of it may depend on a value.

Requests are compared by a small classifier of bytes, which is not told where to look. Bytes and numbers become bits
(numbers by their ranks). It learns from some of the devices how often each bit is set under heads and under tails, and
keeps the bits that differ most. The others are scored by the sum of the kept bits' log-ratios, as if bits were
independent.
"""

from collections.abc import Sequence
from math import exp, log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.attacks.observed import Observed
from lab.attacks.report import Finding
from protocols.arrays import Bytes, Column, Floats, Gaps, Mask, Tokens
from protocols.survey import NEVER, Visits

SPARE = 1.0  # how far above what chance makes of the best bit a bit must be, to be kept beside a better one
MOST_DEVICES = 20_000  # that the classifier is given


class Beside:
    """Collects what stands beside the answers of the devices of an audit."""

    def __init__(self) -> None:
        self.reports = 0
        self._last: Tokens = np.zeros(0, dtype=np.uint64)  # of the last devices alone
        self._twice = self._untrue = self._copied = 0
        self._tests: list[tuple[str, float, str]] = []  # the code of a finding, the chance of luck, and what is found

    def add(self, observed: Observed) -> None:
        """Devices with any values."""
        tokens = observed.tokens[observed.present]
        different, both = np.unique(tokens), np.concatenate([self._last, tokens])
        self.reports += len(tokens)
        self._twice += len(both) - len(np.unique(both))
        self._last = different
        wrong = observed.gaps != true_gaps(observed.present, observed.scheme.visits)
        self._untrue += int((wrong & observed.present).sum())

    def add_coins(self, observed: Observed, coins: Mask, steady: bool) -> None:
        """Devices whose coins chose between two histories; `steady`: their values never change."""
        luck, bit = told(observed, coins)
        text = f"what stands beside the answers tells the value, most of all {bit}"
        self._tests.append(("beside-the-answers", luck, text))
        if steady and observed.scheme.survey.longitudinal:
            text = "answers before a restart are less like those after it than like each other: memos changed"
            self._tests.append(("memo-changed", chance_of_sum(likeness_lost(observed)), text))

    def add_twin(self, observed: Observed, other: Observed) -> None:
        """The first of these devices, with the same values under the same terms, but with another secret."""
        first = observed.present[: other.periods, : other.devices] & other.present
        same = observed.tokens[: other.periods, : other.devices] == other.tokens
        self._copied = int((same & first).sum())
        text = "answers under another secret are too much like those of the same devices"
        self._tests.append(("same-secret", chance_of_sum(likeness_kept(observed, other)), text))

    def findings(self, alpha: float) -> list[Finding]:
        """What must not be; without any fault there is something with a chance of at most alpha."""
        exact = (
            ("gap-untrue", self._untrue, f"of {self.reports:,} gaps are not the true ones"),
            ("token-twice", self._twice, f"of {self.reports:,} tokens were seen before: they link reports"),
            ("same-secret", self._copied, "tokens are the same under another secret"),
        )
        found = [(code, f"{count:,} {text}") for code, count, text in exact if count]
        level = alpha / max(1, len(self._tests))
        found += [(code, f"{text}; by luck: {luck:.1g}") for code, luck, text in self._tests if luck <= level]
        return [Finding(code=code, text=text, defect=True) for code, text in found]


def true_gaps(present: Mask, visits: Visits) -> Gaps:
    """What honest devices report of their earlier reports, in every period."""
    gaps, last = np.zeros(present.shape, dtype=np.uint16), np.full(present.shape[1], NEVER)
    for period, there in enumerate(present):
        gaps[period] = visits.of(last, period)
        last = np.where(there, period, last)
    return gaps


def told(observed: Observed, coins: Mask) -> tuple[float, str]:
    """With which chance luck guesses as many coins from what stands beside the answers, and the bit that tells most.

    A classifier learns from every second device and guesses the coins of the others.
    """
    bits, names = around(observed, min(observed.devices, MOST_DEVICES))
    coins = coins[: len(bits)]
    if not len(names):
        return 1.0, ""
    learns = np.arange(len(bits)) % 2 == 0
    classifier = Classifier(bits[learns], coins[learns])
    guesses = classifier.scores(bits[~learns]) > 0
    return chance_of_luck(guesses, coins[~learns]), names[classifier.best]


def around(observed: Observed, devices: int) -> tuple[Bytes, list[str]]:
    """All that is seen of the first devices beside their answers, as bits, and what each bit is."""
    columns = {
        "token": observed.tokens[..., None].astype(">u8").view(np.uint8),
        "gap": observed.gaps[..., None].astype(">u2").view(np.uint8),
        **observed.around,
    }
    bits, names = [], []
    for name, column in columns.items():
        for period, rows in enumerate(column[:, :devices]):
            seen, called = bits_of_bytes(rows) if rows.ndim == 2 else bits_of_numbers(rows)
            bits.append(seen)
            names += [f"{bit} of the {name} in period {period}" for bit in called]
    return np.concatenate(bits, axis=1), names


def likeness_lost(observed: Observed) -> Floats:
    """For each device, how much less like those before a restart its answers after it are: 0 on average with memos.

    Compared with the last answer before it and with the first after it, in bits, are as many others before as after.
    With one memo all of them come from the same draws: exchanging the others changes the sign and nothing else.
    """
    half, rows = observed.restart, observed.there(range(observed.periods))
    lost = np.zeros(int(rows.sum()))
    for question in observed.scheme.questions:
        answers = observed.answers[question.name][:, rows]
        for step in range(1, min(half, observed.periods - half)):
            for fixed, sign in ((half - 1, 1.0), (half, -1.0)):
                before, after = (bits_apart(answers[fixed], answers[at]) for at in (half - 1 - step, half + step))
                lost += sign * (after - before)
    return lost


def likeness_kept(observed: Observed, other: Observed) -> Floats:
    """For pairs of devices with the same history, how much more like its own answers those under another secret are.

    0 on average if draws depend on the secret: exchanging the pair under one secret changes the sign and nothing else.
    """
    lived = (other.present, *other.values.values())
    histories = [column.swapaxes(0, 1).reshape(other.devices, -1) for column in lived]
    _, history = np.unique(np.concatenate(histories, axis=1), axis=0, return_inverse=True)
    order = np.argsort(history, kind="stable")
    one, two = order[: len(order) // 2 * 2].reshape(-1, 2).T
    one, two = (side[history[one] == history[two]] for side in (one, two))
    kept = np.zeros(len(one))
    for question in observed.scheme.questions:
        for these, those in zip(observed.answers[question.name], other.answers[question.name], strict=False):
            for left, right in ((one, two), (two, one)):
                kept += bits_apart(these[left], those[right]) - bits_apart(these[left], those[left])
    return kept


def bits_apart(answers: Column, others: Column) -> Floats:
    """In how many bits the answers of each device differ."""
    bits = np.bitwise_count(answers ^ others)
    return np.asarray(bits.sum(axis=tuple(range(1, bits.ndim)), dtype=np.float64))


def chance_of_sum(signed: Floats) -> float:
    """At most with this chance numbers sum to as much or more if the sign of each is a fair coin (Hoeffding)."""
    total, length = signed.sum(), sqrt((signed**2).sum())
    return exp(-((total / length) ** 2) / 2) if total > 0 else 1.0


def padded(texts: Sequence[bytes]) -> Bytes:
    """Texts as rows of bytes, filled up with zeros."""
    width = max(1, *map(len, texts))
    return np.frombuffer(b"".join(text.ljust(width, b"\0") for text in texts), np.uint8).reshape(len(texts), width)


def bits_of_bytes(rows: Bytes) -> tuple[Bytes, list[str]]:
    """The bits of bytes that are not the same in all rows, and their names."""
    varied = np.flatnonzero(np.ptp(rows, axis=0))
    names = [f"bit {bit} of byte {byte}" for byte in varied for bit in range(7, -1, -1)]
    return np.unpackbits(rows[:, varied], axis=1), names


def bits_of_numbers(column: NDArray[Any]) -> tuple[Bytes, list[str]]:
    """The bits of the numbers' ranks, as one byte: its first bit is set in the larger half."""
    ranks = np.searchsorted(np.sort(column), column)
    return bits_of_bytes((ranks[:, None] * 256 // len(column)).astype(np.uint8))


class Classifier:
    """What bits say about a coin, learnt from rows whose coins are known."""

    def __init__(self, bits: Bytes, coins: Mask) -> None:
        heads, tails = ((bits[side].sum(axis=0) + 0.5) / (side.sum() + 1) for side in (coins, ~coins))
        both = (bits.sum(axis=0) + 0.5) / (len(bits) + 1)
        error = np.sqrt(both * (1 - both) * (1 / (coins.sum() + 1) + 1 / ((~coins).sum() + 1)))
        apart = np.abs(heads - tails) / error
        self.best = int(np.argmax(np.append(apart, 0.0)))
        self._kept = np.flatnonzero(apart >= min(apart.max(initial=0.0), sqrt(2 * log(len(apart) + 1)) + SPARE))
        self._set = np.log(heads / tails)[self._kept]
        self._unset = np.log((1 - heads) / (1 - tails))[self._kept]

    def scores(self, bits: Bytes) -> Floats:
        """ln of how much likelier each row is under heads."""
        return np.asarray(np.where(bits[:, self._kept], self._set, self._unset).sum(axis=1))


def chance_of_luck(guesses: Mask, coins: Mask) -> float:
    """How often as many guesses are right, or more, if coins are dealt to devices at random.

    This is the permutation test of the number of right guesses, without drawing permutations.

    >>> coins = np.arange(20) < 10
    >>> f"{chance_of_luck(coins, coins):.1g}", chance_of_luck(~coins, coins)
    ('5e-06', 1.0)
    """
    from scipy.stats import hypergeom  # takes over a second to import

    both = int((guesses & coins).sum())
    return float(hypergeom.sf(both - 1, len(coins), int(coins.sum()), int(guesses.sum())))
