"""Reading flatbuffers that may be hostile: small accessors in which every read is checked.

A table starts with a signed distance back to its vtable: u16 vtable size, u16 table size, then one u16 per field, the
field's distance from the table or 0 where it is absent. Text, vectors and other tables are reached by an unsigned
distance. Whatever the bytes are, nothing worse than `Broken` is raised.
"""

from __future__ import annotations

from struct import Struct, unpack_from

MOST_FIELDS = 8  # of a table that are read
MOST_TEXT = 1024  # bytes of a text: many fields may refer to the same one, of which each reading is a copy
U8, I16, U16, I32, U32, I64 = (Struct(f"<{code}") for code in "BhHiIq")


class Broken(ValueError):
    """The bytes are malformed."""


class Table:
    """A flatbuffer table; fields are asked for by their slot in the schema, of the first `MOST_FIELDS`."""

    __slots__ = "_data", "_distances", "_start"

    def __init__(self, data: bytes, start: int) -> None:
        vtable = start - _read(I32, data, start)
        fields = max(0, min((_read(U16, data, vtable) - 4) // 2, MOST_FIELDS))
        if vtable + 4 + 2 * fields > len(data):
            raise Broken("a table without its fields")
        self._data = data
        self._start = start
        self._distances: tuple[int, ...] = unpack_from(f"<{fields}H", data, vtable + 4)

    @classmethod
    def root(cls, data: bytes) -> Table:
        return cls(data, _read(U32, data, 0))

    def number(self, slot: int, kind: Struct) -> int:
        """A number; 0 where it is left out (the default of every number read here)."""
        place = self._place(slot)
        return _read(kind, self._data, place) if place else 0

    def table(self, slot: int) -> Table | None:
        place = self._place(slot)
        return Table(self._data, self._follow(place)) if place else None

    def text(self, slot: int) -> str:
        place = self._place(slot)
        if not place:
            return ""
        start, count = self._vector(place)
        if count > MOST_TEXT:
            raise Broken(f"a text of {count} bytes; at most {MOST_TEXT}")
        raw = self._data[start : start + count]
        if len(raw) < count:
            raise Broken("text runs past the end")
        return raw.decode()

    def tables(self, slot: int, most: int) -> list[Table]:
        """A vector of tables, of no more than `most`."""
        place = self._place(slot)
        if not place:
            return []
        start, count = self._vector(place)
        if count > most:
            raise Broken(f"{count} entries; at most {most}")
        return [Table(self._data, self._follow(start + 4 * i)) for i in range(count)]

    def numbers(self, slot: int, each: int, most: int) -> tuple[int, ...]:
        """A vector of structs of `each` signed 64-bit numbers, flat; no more than `most` structs."""
        place = self._place(slot)
        if not place:
            return ()
        start, count = self._vector(place)
        if count > most:
            raise Broken(f"{count} entries; at most {most}")
        if start + 8 * each * count > len(self._data):
            raise Broken("a vector runs past the end")
        return unpack_from(f"<{each * count}q", self._data, start)

    def has(self, slot: int) -> bool:
        return self._place(slot) != 0

    def _place(self, slot: int) -> int:
        """Where a field is; 0 if it is left out."""
        distance = self._distances[slot] if slot < len(self._distances) else 0
        return self._start + distance if distance else 0

    def _follow(self, place: int) -> int:
        return place + _read(U32, self._data, place)

    def _vector(self, place: int) -> tuple[int, int]:
        """Where a vector's entries start, and how many there are."""
        start = self._follow(place)
        return start + 4, _read(U32, self._data, start)


def _read(kind: Struct, data: bytes, place: int) -> int:
    if not 0 <= place <= len(data) - kind.size:
        raise Broken("an offset points outside")
    number: int = kind.unpack_from(data, place)[0]
    return number
