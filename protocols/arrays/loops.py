"""With which loops this process counts: numpy's, unless it asked for compiled ones.

Compiled loops count a backlog in half the time. To load them takes most of a second of CPU and 100 MB, which is more
than they save in a run of some hundred thousand reports. So a worker of a cluster asks for them when it starts, and
nobody else does: runs, replays and served surveys in one process count with numpy. Both give the same numbers.
"""

from types import ModuleType

from protocols.arrays import numpy_loops

_compiled = False


def use_compiled_loops() -> None:
    """Count with compiled loops from now on, in all of this process."""
    global _compiled
    _compiled = True


def are_compiled() -> bool:
    return _compiled


def counting_loops() -> ModuleType:
    """The module with the loops that count answers."""
    if not _compiled:
        return numpy_loops
    from protocols.arrays import compiled_loops

    return compiled_loops
