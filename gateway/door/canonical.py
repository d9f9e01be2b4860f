"""Reading reports that are written as our libraries write them, without parsing JSON.

All reports of a survey and period that answer the same attributes have the same text but for a few hexadecimal digits.
Once one of them was read strictly, its form is known, and others are compared with it: those that have the same text
with other digits are what strict reading would make of them. Anything else is left to strict reading.
"""

from __future__ import annotations

import json
import re
from binascii import unhexlify
from collections import OrderedDict
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from protocols.arrays import Bytes
from protocols.scheme import Scheme
from protocols.wire import Frame, ReportRow

MOST_FORMS = 64
MOST_BYTES = 4096
"""Of one report: a longer one is parsed, so that what is kept stays small."""
SEPARATORS = (b",", b", ", b",\n", b"\n")
_DIGITS = np.full(256, 255, dtype=np.uint8)
_DIGITS[np.frombuffer(b"0123456789abcdef", dtype=np.uint8)] = np.arange(16, dtype=np.uint8)


@dataclass(frozen=True)
class Form:
    """The text of reports with one header that answer the same attributes: `literals`, and numbers between them."""

    row: ReportRow  # one of them
    scheme: Scheme = field(compare=False)

    @cached_property
    def literals(self) -> tuple[bytes, ...]:
        text = [json.dumps(self.row.header.write(), separators=(",", ":"))[:-1] + ',"token":"', '","gap":"']
        opening = '","answers":{'
        for name in self.row.answered:
            text.append(f'{opening}{json.dumps(name)}:"')
            opening = '",'
        text.append('"}}' if self.row.answered else opening + "}}")
        return tuple(part.encode() for part in text)

    @cached_property
    def widths(self) -> tuple[int, ...]:
        return 8, 2, *(len(answer) for answer in self.row.answers)

    @cached_property
    def pattern(self) -> re.Pattern[bytes]:
        numbers = [b"([0-9a-f]{%d})" % (2 * width) for width in self.widths]
        parts = [re.escape(literal) + number for literal, number in zip(self.literals, numbers, strict=False)]
        return re.compile(b"".join(parts) + re.escape(self.literals[-1]))

    @cached_property
    def length(self) -> int:
        return sum(map(len, self.literals)) + 2 * sum(self.widths)

    @cached_property
    def spans(self) -> tuple[slice, ...]:
        """Where the digits of each number are."""
        found, at = [], 0
        for literal, width in zip(self.literals, self.widths, strict=False):
            begin = at + len(literal)
            at = begin + 2 * width
            found.append(slice(begin, at))
        return tuple(found)

    def read(self, body: bytes) -> ReportRow | None:
        match = self.pattern.fullmatch(body)
        if match is None:
            return None
        token, gap, *answers = map(unhexlify, match.groups())
        return ReportRow(self.row.header, self.row.answered, token, gap, tuple(answers))

    def read_many(self, body: bytes, separator: bytes) -> Frame | None:
        """Reports of this form with the same separator between them, as a frame in their order."""
        stride = self.length + len(separator)
        if (len(body) + len(separator)) % stride:
            return None
        texts = np.frombuffer(body + separator, dtype=np.uint8).reshape(-1, stride)
        same = np.ones(stride, dtype=bool)
        for span in self.spans:
            same[span] = False
        if not (texts[:, same] == texts[0, same]).all():
            return None
        numbers = [_decoded(texts[:, span]) for span in self.spans]
        if any(number is None for number in numbers):
            return None
        token, gap, *answers = (number for number in numbers if number is not None)
        columns = {
            name: self.scheme.question(name).mechanism.encoding.answer.from_bytes(number)
            for name, number in zip(self.row.answered, answers, strict=True)
        }
        tokens = token.reshape(-1).view(">u8").astype(np.uint64)
        gaps = gap.reshape(-1).view(">u2").astype(np.uint16)
        header = self.row.header
        return Frame(header.survey, header.fingerprint, header.period, tokens, gaps, columns)


def _decoded(digits: Bytes) -> Bytes | None:
    values = _DIGITS[digits]
    if (values > 15).any():
        return None
    return np.ascontiguousarray(values[:, ::2] << 4 | values[:, 1::2])


class Forms:
    """The forms of the reports that were read last; a bounded number of them."""

    def __init__(self) -> None:
        self._forms: OrderedDict[tuple[object, tuple[str, ...]], Form] = OrderedDict()
        self._by_length: dict[int, tuple[Form, ...]] = {}

    def learn(self, row: ReportRow, scheme: Scheme) -> None:
        """Remember the form of a report that was read strictly."""
        key = row.header, row.answered
        known = self._forms.get(key)
        if known is not None and known.scheme is scheme:
            return
        form = Form(row, scheme)
        if form.length > MOST_BYTES:
            return
        self._forms[key] = form
        if len(self._forms) > MOST_FORMS:
            self._forms.popitem(last=False)
        self._by_length = {}
        for each in self._forms.values():
            self._by_length[each.length] = (*self._by_length.get(each.length, ()), each)

    def of(self, body: bytes) -> Form | None:
        """The form of a report; None if it is not known, or this is something else."""
        for form in self._by_length.get(len(body), ()):
            if form.pattern.fullmatch(body) is not None:
                return form
        return None

    def read_many(self, body: bytes) -> Frame | None:
        """A JSON array, or lines, of reports of one known form; None if it is something else."""
        inner = body[1:-1] if body[:1] == b"[" and body[-1:] == b"]" else body.removesuffix(b"\n")
        in_array = inner is not body and body[:1] == b"["
        for form in self._forms.values():
            if form.read(inner[: form.length]) is None:
                continue
            rest = inner[form.length : form.length + 2]
            for separator in SEPARATORS:
                if rest.startswith(separator) and (separator == b"\n") != in_array:
                    frame = form.read_many(inner, separator)
                    if frame is not None:
                        return frame
        return None
