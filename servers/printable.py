"""Text from files, servers and surveys that is safe to show on a terminal."""

import re

UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters, which move the cursor, change colours or the title
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # marks that change the direction of writing
    "\ud800-\udfff]"  # halves of characters, which cannot be written
)
PLAIN = {"✓": "+", "✗": "x", "█": "#", "–": "-", "—": "-", "…": ".", "±": "~", "×": "x", "’": "'", "≤": "<", "≥": ">"}


def printable(text: str, encoding: str = "utf-8") -> str:
    """Text in which every character that a terminal would obey, or cannot show, is another one.

    >>> printable("red\\x1b[31m alert\\x07")
    'red?[31m alert?'
    >>> printable("café ✓ 5 – 7", "ascii")
    'caf? + 5 - 7'
    """
    if text.isascii() and text.isprintable():
        return text
    safe = UNSAFE.sub("?", text)
    try:
        safe.encode(encoding)
    except UnicodeEncodeError:
        known = "".join(PLAIN.get(character, character) for character in safe)
        return known.encode(encoding, "replace").decode(encoding)
    return safe


def printable_json(text: str) -> str:
    """JSON text in which such characters are escaped: the same data.

    >>> printable_json('{"a": "\\x9b"}')
    '{"a": "\\\\u009b"}'
    """
    if text.isascii() and "\x7f" not in text:  # JSON has no other control characters that are not escaped
        return text
    return UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
