"""The compiled loops of counting, loaded before reports wait for them."""

import numpy as np

from protocols.arrays import use_compiled_loops

TOKENS = 64


def count_with_compiled_loops() -> None:
    """Count with compiled loops from now on, in all of this process.

    Only the worker of a cluster does so: `protocols.arrays.loops` says why.
    """
    load_loops()
    use_compiled_loops()


def load_loops() -> None:
    """Load the compiled loops, or compile them, which takes up to a minute."""
    from stream_app.counting.tables.token_table import TokenTable

    TokenTable().insert(np.arange(1, TOKENS + 1, dtype=np.uint64))
