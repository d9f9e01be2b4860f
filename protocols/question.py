"""One attribute as a survey asks it: a mechanism, and how often its answer is about the truth."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from hearsay_device.draws import hashed
from protocols.arrays.aliases import Floats, Mask, Values, Whole
from protocols.mechanisms.channels import SupportChannel
from protocols.mechanisms.encodings import FakeKind, table_of
from protocols.mechanisms.mechanism import Budget, Channel, Mechanism
from protocols.mechanisms.record import MechanismRecord
from protocols.mechanisms.rounds import Flip, MatrixRound, Round
from protocols.randomness.sampling import digest
from protocols.survey.attribute import Attribute
from protocols.survey.crosses import Crossed
from protocols.survey.sets import Padded, Thresholds


@dataclass(frozen=True)
class Question:
    """One attribute as it is asked."""

    attribute: Attribute
    mechanism: Mechanism
    record: MechanismRecord  # the mechanism as surveys name it, such as "oue-z"
    budget: Budget
    share: float = 1.0  # the chance that an answer is about the truth
    fake: Floats | None = field(default=None, repr=False)  # of fake values; None: zero vectors
    drawn: Fraction = Fraction(1)  # the chance that a report answers it, where a report answers one question

    @property
    def name(self) -> str:
        return self.attribute.name

    @property
    def label(self) -> str:
        """The mechanism's name as surveys, plans and results show it."""
        return self.record.name

    @property
    def k(self) -> int:
        return self.attribute.k

    @property
    def axes(self) -> tuple[Attribute, ...]:
        """The two attributes that a cross is of; none where one attribute is asked."""
        return self.attribute.axes if isinstance(self.attribute, Crossed) else ()

    @property
    def sources(self) -> tuple[Attribute, ...]:
        """The attributes of which a device must know its value: one, or both of a cross."""
        return self.axes or (self.listed if self.numeric else self.items,)

    @property
    def numeric(self) -> bool:
        """Whether answers are about thresholds of a number."""
        return isinstance(self.attribute, Thresholds)

    @property
    def sets(self) -> bool:
        """Whether a device draws one element of its set."""
        return isinstance(self.attribute, Padded) and not self.numeric

    @property
    def listed(self) -> Attribute:
        """The attribute with the values that devices put into cells: of thresholds the numbers."""
        return self.attribute.number if isinstance(self.attribute, Thresholds) else self.attribute

    @property
    def items(self) -> Attribute:
        """The attribute as the survey lists it: of sets without paddings."""
        return self.attribute.items if isinstance(self.attribute, Padded) else self.attribute

    @property
    def several(self) -> int:
        """The size to which sets are padded; 1 where a device has one value."""
        return self.mechanism.encoding.several

    @property
    def role(self) -> str:
        """What mobility reports take it for."""
        return "cross" if self.axes else self.attribute.role

    def places(self, values: Mapping[str, Values]) -> Values:
        """The place of each device's value among the values asked, from its places in each attribute's values."""
        first, *rest = self.sources
        places = values[first.name]
        for axis in rest:
            places = places.astype(np.int64) * axis.k + values[axis.name]
        return places

    @cached_property
    def members(self) -> Mask:
        """Which values belong to each group of the attribute: a row for each group, in their order."""
        if not self.axes:
            return _members(self.attribute)
        (ones, groups), (others, more) = ((np.eye(a.k, dtype=np.bool_), _members(a)) for a in self.axes)
        return np.concatenate([np.kron(groups, others), np.kron(ones, more), np.kron(groups, more)])

    @property
    def faked(self) -> bool:
        return self.share < 1

    @cached_property
    def order(self) -> Whole:
        """Its values in the question's own order, each by its place in the survey's (docs/device-protocol.md).

        By their UTF-8 bytes where the mechanism knows no order, paddings last; as listed where a hash, a prior, a
        grid or a threshold does; of ordered values as listed or reversed, whichever is smaller.
        """
        as_listed, kind = np.arange(self.listed.k), self.mechanism.encoding.kind
        encoded = [value.encode() for value in self.listed.values]
        if kind in ("hashed", "fresh", "plane", "threshold") or self.attribute.prior is not None:
            return as_listed
        if isinstance(self.mechanism.first, MatrixRound):
            return as_listed if encoded <= encoded[::-1] else as_listed[::-1]
        items = self.items.k
        return np.array([*sorted(range(items), key=encoded.__getitem__), *range(items, self.k)])

    @cached_property
    def as_listed(self) -> bool:
        """Whether its own order is the survey's."""
        return bool((np.diff(self.order) > 0).all())

    @cached_property
    def places_in_order(self) -> Whole:
        """The place of each value of the survey in the question's own order."""
        return np.argsort(self.order)

    @cached_property
    def id(self) -> str:
        """The same in every survey that asks the same: its memos are keyed by it."""
        encoding = self.mechanism.encoding
        parameter = next((number for key, number in encoding.terms.items() if key in ("g", "d", "slots")), 0)
        texts = ["question", encoding.kind, str(parameter), str(self.listed.k), self.fake_kind or ""]
        texts += [" ".join(self.tables["traits"]), " ".join(self.tables["first"]), str(len(self.sources))]
        for source in self.sources:
            texts += [source.name, source.other or "", "" if source.grid is None else source.grid.written]
        return hashed(*texts, *(self.listed.values[place] for place in self.order.tolist()))

    @cached_property
    def tables(self) -> dict[str, tuple[str, ...]]:
        """Digests of all integers that its answers are drawn with (PROTOCOLS 8)."""
        encoding, second = self.mechanism.encoding, self.mechanism.second
        noisy = None if self.fake is None or self.fake_kind != "noisy" else table_of(tuple(self.fake.tolist())).integers
        memos = encoding.inner.memo_tables(self.mechanism.first, self.fake if self.fake_kind == "bare" else None)
        drawn = {
            "traits": encoding.trait_tables(),
            "first": memos if noisy is None else (*memos, noisy),
            "second": () if second is None else encoding.inner.report_tables(second),
        }
        return {part: tuple(map(digest, tables)) for part, tables in drawn.items()}

    @property
    def terms(self) -> dict[str, Any]:
        """Everything that a device needs to answer it: numbers that its tables follow from, and the tables' digests."""
        second = self.mechanism.second
        return {
            "mechanism": self.label,
            "encoding": self.mechanism.encoding.terms,
            "fakes": self.fake_kind,
            "first": self.mechanism.first.numbers,
            "second": None if second is None else second.numbers,
            "tables": self.tables,
        }

    @cached_property
    def channel(self) -> Channel:
        """The channel of one report."""
        return self.mechanism.channel(self.share, self.fake_answer)

    @cached_property
    def variance(self) -> float:
        """n times the variance of an estimate at frequency 0, by which mechanisms are compared; 0 of a matrix."""
        channel = self.channel
        return float(channel.variance(np.zeros(self.k)).mean()) if isinstance(channel, SupportChannel) else 0.0

    @cached_property
    def memo_channel(self) -> Channel:
        """The channel of the memos alone, whose variance averaging over periods cannot reduce (PROTOCOLS 3)."""
        return replace(self.mechanism, second=None).channel(self.share, self.fake_memo)

    @property
    def fake_kind(self) -> FakeKind | None:
        """What its fakes are; None where all answers are about the truth."""
        return self.record.fakes.kind if self.faked and self.record.fakes is not None else None

    @property
    def fake_memo(self) -> Floats | None:
        """The distribution of fake values as memos have it.

        A direct fake is a symbol, so noise changes its distribution: a noisy one went through round 1, a bare one did
        not. Of a unary fake a round flips bits, not the value.
        """
        return self._perturbed(self.fake, self.mechanism.first) if self.fake_kind == "noisy" else self.fake

    @property
    def fake_answer(self) -> Floats | None:
        """The distribution of fake values as answers have it."""
        return self._perturbed(self.fake_memo, self.mechanism.second)

    def _perturbed(self, shares: Floats | None, noise: Round | None) -> Floats | None:
        if shares is None or not self.mechanism.encoding.exclusive or not isinstance(noise, Flip):
            return shares
        return np.asarray(shares * noise.gain + noise.q)


def _members(attribute: Attribute) -> Mask:
    places = {value: place for place, value in enumerate(attribute.values)}
    members = np.zeros((len(attribute.groups), attribute.k), dtype=np.bool_)
    for row, group in zip(members, attribute.groups.values(), strict=True):
        row[[places[value] for value in group]] = True
    return members
