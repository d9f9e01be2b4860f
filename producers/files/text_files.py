"""Files as text, whatever their encoding, compression and damage."""

import codecs
import io
from pathlib import Path

import pyarrow as pa

from protocols.errors import ReplayError

SAMPLE = 1 << 20
"""How much of a file is looked at: characters, or bytes."""
COMPRESSIONS = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}


class TextFile(io.TextIOWrapper):
    r"""A file as text, without a byte order mark. Lines end as they do in the file.

    Bytes that the encoding does not have become \xNN, so that different bytes stay different text, and no reader fails
    on them (pyarrow's own would quote the row, which names a person).

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "events.csv"
    >>> _ = path.write_bytes(b"caf\xe9")
    >>> with TextFile(path) as as_utf8, TextFile(path, "latin-1") as as_latin:
    ...     as_utf8.read(), as_latin.read()
    ('caf\\xe9', 'café')
    """

    def __init__(self, path: Path, encoding: str = "utf-8", errors: str = "backslashreplace") -> None:
        self._size = max(1, path.stat().st_size)
        self._file = pa.OSFile(str(path))
        content = pa.input_stream(self._file, compression=COMPRESSIONS.get(path.suffix))
        super().__init__(content, "utf-8-sig" if encoding == "utf-8" else encoding, errors, newline="")

    @property
    def share_read(self) -> float:
        return min(1.0, float(self._file.tell()) / self._size)


class Utf8(io.RawIOBase):
    """The text of a file as bytes, for readers of pyarrow."""

    def __init__(self, text: io.TextIOBase) -> None:
        self._text = text

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        return self._text.read(size // 4).encode(errors="replace")  # at most 4 bytes for each character


def check_encoding(name: str) -> str:
    """The name of an encoding that Python knows and that is for text."""
    try:
        found = codecs.lookup(name)
        "".encode(name)
    except (LookupError, ValueError, UnicodeError):
        raise ReplayError(f"{name!r} is not an encoding", "name one such as utf-8, latin-1, cp1252 or utf-16") from None
    return found.name
