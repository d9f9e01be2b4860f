"""What stands beside the answers: tokens, gaps, and the bytes, lengths, numbers, order and times of requests.

None of it may depend on a value. Some checks are exact: no token twice, gaps as the truth has them, other tokens under
another secret. Others are tests at a level: whether requests tell a device's coin, and whether memos outlive a restart.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import exp, sqrt

import numpy as np

from lab.attacks.bits import Classifier, bits_of_bytes, bits_of_numbers, chance_of_luck
from lab.attacks.observed import Observed
from lab.audit.report import Finding
from protocols.arrays import Bytes, Floats, Gaps, Mask, Tokens

MOST_DEVICES = 20_000  # that the classifier is given


@dataclass
class Beside:
    """Collects what stands beside the answers of the devices of an audit."""

    _tokens: list[Tokens] = field(default_factory=list)
    _untrue: list[str] = field(default_factory=list)
    _learnt: list[tuple[float, str]] = field(default_factory=list)  # of each experiment: chance of luck, the best bit
    _longer: list[Floats] = field(default_factory=list)
    _copied: int = 0

    @property
    def empty(self) -> bool:
        return not self._tokens

    def add(self, observed: Observed) -> None:
        """Devices with any values."""
        self._tokens.append(observed.tokens[observed.present])
        wrong = (observed.gaps != true_gaps(observed.present, observed.scheme.survey.horizon)) & observed.present
        if wrong.any():
            self._untrue.append(f"{int(wrong.sum()):,} of {int(observed.present.sum()):,} gaps are not the true ones")

    def add_coins(self, observed: Observed, coins: Mask, steady: bool) -> None:
        """Devices whose coins chose between two histories; `steady`: their values never change."""
        self._learnt.append(told(observed, coins))
        if steady and observed.scheme.survey.longitudinal:
            self._longer.append(likeness_lost(observed))

    def add_twin(self, observed: Observed, other: Observed) -> None:
        """The same devices with the same values under the same terms, but with another secret."""
        both = observed.present[:, : other.devices] & other.present
        self._copied += int((observed.tokens[:, : other.devices] == other.tokens)[both].sum())

    def findings(self, alpha: float) -> list[Finding]:
        """What must not be; without any fault there is something with a chance of at most alpha."""
        found = [("gap-untrue", text) for text in self._untrue]
        tokens = np.concatenate([np.zeros(0, dtype=np.uint64), *self._tokens])
        if twice := len(tokens) - len(np.unique(tokens)):
            found.append(("token-twice", f"{twice:,} of {len(tokens):,} tokens were seen before: they link reports"))
        if self._copied:
            found.append(("same-secret", f"{self._copied:,} tokens are the same under another secret"))
        level = alpha / max(1, len(self._learnt) + bool(self._longer))
        for luck, bit in self._learnt:
            if luck <= level:
                text = f"what stands beside the answers tells the value, most of all {bit}; by luck: {luck:.1g}"
                found.append(("beside-the-answers", text))
        if self._longer and (luck := chance_of_sum(np.concatenate(self._longer))) <= level:
            text = "answers before a restart are less like those after it than like each other: memos changed"
            found.append(("memo-changed", f"{text}; by luck: {luck:.1g}"))
        return [Finding(code=code, text=text, defect=True) for code, text in found]


def true_gaps(present: Mask, horizon: int) -> Gaps:
    """Periods since the last report of each device, at most the horizon, which also stands for never.

    >>> true_gaps(np.array([[True], [False], [True], [True]]), 7)[:, 0].tolist()
    [7, 1, 2, 1]
    """
    gaps, last = np.full(present.shape, horizon, dtype=np.uint16), np.full(present.shape[1], -horizon)
    for period, there in enumerate(present):
        gaps[period] = np.minimum(horizon, period - last)
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
    With one memo all of them come from the same draws: exchanging before and after changes the sign and nothing else.
    """
    half, rows = observed.restart, observed.there(range(observed.periods))
    lost = np.zeros(int(rows.sum()))
    for question in observed.scheme.questions:
        answers = observed.answers[question.name][:, rows].reshape(observed.periods, len(lost), -1)
        for step in range(1, min(half, observed.periods - half)):
            for fixed, sign in ((half - 1, 1.0), (half, -1.0)):
                apart = [answers[fixed] ^ answers[other] for other in (half - 1 - step, half + step)]
                before, after = (np.bitwise_count(bits).sum(axis=1, dtype=np.int64) for bits in apart)
                lost += sign * (after - before)
    return lost


def chance_of_sum(signed: Floats) -> float:
    """At most with this chance numbers sum to as much or more if the sign of each is a fair coin (Hoeffding)."""
    total, length = signed.sum(), sqrt((signed**2).sum())
    return exp(-((total / length) ** 2) / 2) if total > 0 else 1.0
