"""Finals as state records: one record, or pieces and a manifest where that would be too large.

    merge/Q/final/SURVEY/PERIOD             the final, or the digests of its pieces: the manifest
    merge/Q/piece/SURVEY/PERIOD/DIGEST      a part of the bytes of a large final

A final is published after its manifest is written, and that is written after the pieces. Their keys are digests of
their contents, which depend on the counts alone: whoever writes a final late, writes what is there. Pieces are deleted
together with the final of their period.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stream_app.counting.clocks import NEVER
from stream_app.counting.counters import Counts, arrays_of, from_arrays
from stream_app.counting.state import Period
from stream_app.log.codec import Array, Head, pack, unpack
from stream_app.log.encoding import compress, decompress, digest
from stream_app.log.flushes import Output, TopicName, Write
from stream_app.merging.verdicts import NotCounted
from stream_app.results.presence_noise import Release


def final_key(owner: int, period: Period) -> bytes:
    return "/".join(map(str, ("merge", owner, "final", *period))).encode()


def piece_key(owner: int, period: Period, name: str) -> bytes:
    return "/".join(map(str, ("merge", owner, "piece", *period, name))).encode()


@dataclass
class Final:
    """A closed period: its messages, its counts (or release), what is missing in them, and its verdict's alarms.

    `after` is the last period that was published before it.
    """

    outputs: tuple[Output, ...]
    counts: Counts | Release
    missing: NotCounted = field(default_factory=NotCounted)
    alarms: tuple[tuple[str, str], ...] = ()  # attributes, and what is unusual about them
    after: int = NEVER
    unsaved: bool = True

    def writes(self, owner: int, period: Period, limit: int) -> tuple[list[Write], Write]:
        """Its pieces, none if it fits in one record of `limit` bytes, and its own record, to be written after them."""
        contents = self._encode()
        if len(contents) <= limit:
            return [], Write(final_key(owner, period), pack({"after": self.after, "pieces": []}, [_bytes(contents)]))
        cuts = [contents[begin : begin + limit] for begin in range(0, len(contents), limit)]
        names = [digest(cut) for cut in cuts]
        pieces = [Write(piece_key(owner, period, name), cut) for name, cut in zip(names, cuts, strict=True)]
        return pieces, Write(final_key(owner, period), pack({"after": self.after, "pieces": names}))

    @staticmethod
    def decode(record: bytes, pieces: Mapping[str, bytes]) -> Final | None:
        """The final of a record and its pieces; None if a piece is missing."""
        head, contents = unpack(record)
        if not pieces.keys() >= set(head["pieces"]):
            return None
        whole = contents[0].tobytes() if contents else b"".join(pieces[name] for name in head["pieces"])
        inner, (packed, *values) = unpack(whole)
        outputs = tuple(
            _output(value.tobytes(), *described) for described, value in zip(inner["outputs"], values, strict=True)
        )
        names, (_, arrays) = inner["attributes"], unpack(decompress(packed.tobytes()))
        released = "late" in inner
        counts = Release.of_arrays(names, inner["late"], arrays) if released else from_arrays(names, arrays)
        refused, late = inner["missing"]
        alarms = tuple((name, check) for name, check in inner["alarms"])
        return Final(outputs, counts, NotCounted(refused, dict(late)), alarms, head["after"], unsaved=False)

    def _encode(self) -> bytes:
        head: Head = {
            "outputs": [_described(output) for output in self.outputs],
            "missing": [self.missing.refused, sorted(self.missing.late.items())],
            "alarms": self.alarms,
        }
        if isinstance(self.counts, Release):
            arrays = self.counts.arrays
            head |= {"attributes": list(self.counts.n), "late": self.counts.late}
        else:
            arrays = arrays_of(self.counts)
            head |= {"attributes": list(self.counts)}
        packed = compress(pack({}, arrays))  # the messages are compressed already
        return pack(head, [_bytes(packed), *(_bytes(output.value) for output in self.outputs)])


def _bytes(value: bytes) -> Array:
    return np.frombuffer(value, dtype=np.uint8)


def _described(output: Output) -> list[Any]:
    return [output.topic, output.key.decode(), [[name, text.decode()] for name, text in output.headers]]


def _output(value: bytes, topic: TopicName, key: str, headers: Iterable[tuple[str, str]]) -> Output:
    return Output(topic, key.encode(), value, tuple((name, text.encode()) for name, text in headers))


def outdated(finals: Mapping[int, Final], horizon: int) -> list[int]:
    """Periods of one survey whose published finals are in no window of a period whose final may still be made.

    Such a period comes after the last one that is known, from the kept finals, to be published.
    """
    published_through = max((final.after for final in finals.values()), default=NEVER)
    oldest = published_through - max(horizon - 2, 0)
    return [period for period in finals if period < oldest]
