"""Reading reports that are written as our libraries write them, without parsing JSON.

All reports of a survey and period that answer the same attributes have the same text but for a few hexadecimal digits.
Once one of them was read strictly, its form is known, and others are compared with it: those that have the same text
with other digits are what strict reading would make of them. Anything else is left to strict reading, which takes ten
times as long.
"""

import json
import re
from binascii import unhexlify
from typing import NamedTuple

import numpy as np

from protocols.scheme import Scheme
from protocols.wire import Frame, ReportHeader, ReportRow

MOST_FORMS = 64
MOST_BYTES = 4096
"""Of one report: a longer one is parsed, so that what is kept stays small."""
SEPARATORS = (b",", b", ", b",\n")


class Form(NamedTuple):
    """The text of reports with one header that answer the same attributes; the pattern has a group for each number."""

    header: ReportHeader
    answered: tuple[str, ...]
    scheme: Scheme
    length: int
    pattern: re.Pattern[bytes]

    @staticmethod
    def of(row: ReportRow, scheme: Scheme) -> "Form":
        """The text is as our libraries write it, at first with zero bytes for digits: JSON has none in other places."""
        header = json.dumps(row.header.write(), separators=(",", ":")).removesuffix("}")
        token, gap, *answers = ("\0" * 2 * len(number) for number in (row.token, row.gap, *row.answers))
        listed = ",".join(f'{json.dumps(name)}:"{answer}"' for name, answer in zip(row.answered, answers, strict=True))
        text = f'{header},"token":"{token}","{scheme.visits.column}":"{gap}","answers":{{{listed}}}}}'
        pattern = re.sub("\0+", lambda run: f"([0-9a-f]{{{len(run[0])}}})", re.escape(text))
        return Form(row.header, row.answered, scheme, len(text), re.compile(pattern.encode()))


class Forms:
    """The forms of the reports that were read last; a bounded number of them."""

    def __init__(self) -> None:
        self._forms: dict[tuple[ReportHeader, tuple[str, ...]], Form] = {}

    def learn(self, row: ReportRow, scheme: Scheme) -> None:
        """Remember the form of a report that was read strictly."""
        key = row.header, row.answered
        known = self._forms.get(key)
        if known is not None and known.scheme is scheme:
            return
        form = Form.of(row, scheme)
        if form.length <= MOST_BYTES:
            self._forms[key] = form
        if len(self._forms) > MOST_FORMS:
            del self._forms[next(iter(self._forms))]

    def read(self, body: bytes) -> ReportRow | None:
        """A report of a known form; None if it is something else."""
        for form in self._forms.values():
            match = form.pattern.fullmatch(body) if form.length == len(body) else None
            if match is not None:
                token, gap, *answers = map(unhexlify, match.groups())
                return ReportRow(form.header, form.answered, token, gap, tuple(answers))
        return None

    def read_many(self, body: bytes, in_lines: bool) -> Frame | None:
        """Reports of one known form, in lines or an array, as a frame in their order; None if it is something else."""
        begin = 0 if in_lines else 1
        form = next((form for form in self._forms.values() if form.pattern.match(body, begin)), None)
        if form is None:
            return None
        found = form.pattern.findall(body)
        places = [b"#"] * len(found)
        lines = b"\n".join(places)
        allowed = (lines, lines + b"\n") if in_lines else [b"[%s]" % comma.join(places) for comma in SEPARATORS]
        if form.pattern.sub(b"#", body) not in allowed:
            return None
        token, gap, *answers = (
            np.frombuffer(unhexlify(b"".join(column)), np.uint8) for column in zip(*found, strict=True)
        )
        columns = {
            name: form.scheme.question(name).mechanism.encoding.answer.from_bytes(answer)
            for name, answer in zip(form.answered, answers, strict=True)
        }
        tokens, gaps = token.view(">u8").astype(np.uint64), form.scheme.visits.read(gap)
        return Frame(form.header.survey, form.header.fingerprint, form.header.period, tokens, gaps, columns)
