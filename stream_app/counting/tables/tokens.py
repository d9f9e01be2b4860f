"""The tokens seen in one period: a set of non-zero 64-bit numbers. Which kind follows from the loops of the process.

Tests hold both kinds equal to Python's sets.
"""

from typing import Protocol

from protocols.arrays import Mask, Tokens, are_compiled
from stream_app.counting.tables.sorted_tokens import SortedTokens


class TokenSet(Protocol):
    """A growing set of tokens."""

    def __len__(self) -> int: ...

    @property
    def nbytes(self) -> int:
        """The memory that it takes."""

    def insert(self, tokens: Tokens) -> Mask:
        """Add tokens, and return which of them are new. Of equal tokens in a batch only the first is new."""

    def reserve(self, more: int) -> None:
        """Make room for more, where that is quicker than to grow."""


def token_set() -> TokenSet:
    """An empty set."""
    if not are_compiled():
        return SortedTokens()
    from stream_app.counting.tables.token_table import TokenTable

    return TokenTable()
