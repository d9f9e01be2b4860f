"""What operators do rarely, on real servers: `make drills`. Minutes, so not part of the tests.

The files are called `drill_*.py`, so that pytest finds them only here. Words after the command go to pytest.
"""

import sys
from pathlib import Path

import pytest

if __name__ == "__main__":
    here = Path(__file__).parent
    sys.exit(pytest.main(["-o", "python_files=drill_*.py", "-v", "-p", "no:cacheprovider", str(here), *sys.argv[1:]]))
