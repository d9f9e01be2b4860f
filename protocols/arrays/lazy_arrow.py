"""pyarrow, imported when something of it is first used: to plan a survey and to read results, it need not be installed.

It is for modules that readers of results import too. All others import pyarrow itself.
"""

from typing import Any


def __getattr__(name: str) -> Any:
    import pyarrow

    return getattr(pyarrow, name)
