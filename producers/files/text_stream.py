"""A file as a stream of valid UTF-8, whatever its encoding, compression and damage."""

import codecs
import io
from pathlib import Path

import pyarrow as pa

from protocols.errors import ReplayError

CHUNK = 1 << 16
SAMPLE_BYTES = 1 << 20
COMPRESSIONS = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}


class Utf8Stream(io.RawIOBase):
    r"""Reads text in any encoding, and returns it in UTF-8.

    Bytes that the encoding does not have become \xNN, so that different bytes stay different text, and no reader fails
    on them (pyarrow's own would quote the row, which names a person).

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "events.csv"
    >>> _ = path.write_bytes(b"caf\xe9")
    >>> Utf8Stream(path).read(100), is_decodable(path, "utf-8")
    (b'caf\\xe9', False)
    >>> Utf8Stream(path, "latin-1").read(100).decode()
    'café'
    """

    def __init__(self, path: Path, encoding: str = "utf-8", errors: str = "backslashreplace") -> None:
        super().__init__()
        self.size = max(1, path.stat().st_size)
        self._file = pa.OSFile(str(path))
        self._input = pa.input_stream(self._file, compression=COMPRESSIONS.get(path.suffix))
        self._is_utf8 = codecs.lookup(encoding).name == "utf-8"
        self._decoder = codecs.getincrementaldecoder(encoding)(errors)
        self._left = b""
        self._ended = False

    @property
    def share_read(self) -> float:
        return min(1.0, float(self._file.tell()) / self.size)

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        if size < 0:
            return self.readall()
        while len(self._left) < size and not self._ended:
            raw = self._input.read(max(size, CHUNK))
            self._ended = not raw
            text = self._decode(raw)
            self._left = self._left + text if self._left else text
        taken, self._left = self._left[:size], self._left[size:]
        return taken

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]  # for those who do not `read`
        taken = self.read(len(buffer))
        buffer[: len(taken)] = taken
        return len(taken)

    def _decode(self, raw: bytes) -> bytes:
        if self._is_utf8 and raw and raw.isascii() and not self._decoder.getstate()[0]:  # no character is incomplete
            return raw
        return self._decoder.decode(raw, final=not raw).encode(errors="backslashreplace")

    def close(self) -> None:
        if not self.closed:
            self._input.close()
            self._file.close()
        super().close()


def is_decodable(path: Path, encoding: str) -> bool:
    """Whether the beginning of a text file is in its encoding."""
    try:
        with Utf8Stream(path, encoding, "strict") as stream:
            stream.read(SAMPLE_BYTES)
    except UnicodeDecodeError:
        return False
    return True


def check_encoding(name: str) -> str:
    """The name of an encoding that Python knows and that is for text."""
    try:
        found = codecs.lookup(name)
        "".encode(name)
    except (LookupError, ValueError, UnicodeError):
        raise ReplayError(f"{name!r} is not an encoding", "name one such as utf-8, latin-1, cp1252 or utf-16") from None
    return found.name
