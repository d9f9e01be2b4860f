"""Where a viewer is: how far it has read what was published."""

from __future__ import annotations

import re
from typing import NamedTuple

_FORM = re.compile(r"([0-9a-f]{0,64}):(\d{1,19}(?:\.\d{1,19}){0,63})")


class Position(NamedTuple):
    """The next offset of each place (a topic, or a data directory), and the identity of what has these offsets.

    Offsets are those of what is published, not of this process: a position is right after a restart, too.
    """

    identity: str
    offsets: tuple[int, ...]

    def __str__(self) -> str:
        """The id of an event, which browsers send back as `Last-Event-ID`.

        >>> str(Position("5eed", (12, 0, 7)))
        '5eed:12.0.7'
        """
        return f"{self.identity}:{'.'.join(map(str, self.offsets))}"

    @staticmethod
    def parse(text: str) -> Position | None:
        """The position in an id; None if it is none.

        >>> Position.parse("5eed:12.0.7"), Position.parse("12")
        (Position(identity='5eed', offsets=(12, 0, 7)), None)
        """
        found = _FORM.fullmatch(text)
        return Position(found[1], tuple(map(int, found[2].split(".")))) if found else None
