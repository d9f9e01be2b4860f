"""Files larger than memory: what a replay needs does not grow with the file."""

import sys
from pathlib import Path

import pytest

from tests.helpers.command_line import done

SCRIPT = """
import resource, sys
from pathlib import Path

import numpy as np
import redis

from memo_store.store import MemoStore
from producers.events import spool
from producers.files import csv_events
from producers.replay import Replay
from protocols.respondent import Respondent
from tests.helpers.sinks import KeepingSink
from tests.producers.populations import CLOCK_KEY, KEYRING
from tests.producers.events import OPTIONS, START, survey

csv_events.BLOCK_BYTES, spool.AT_ONCE = 1 << 17, 10_000  # so that a small file is already many portions
url, directory = sys.argv[1], Path(sys.argv[2])


def events(name, rows):
    '''A day of events; a quarter of them in each period.'''
    rng = np.random.default_rng(0)
    seconds = np.sort(rng.integers(0, 86_400, rows)) + int(START.timestamp())
    people = rng.integers(0, 300, rows)
    path = directory / name
    with path.open("w") as file:
        file.write("msisdn,at,cell,minutes\\n")
        file.writelines(f"+33{p:09d},{s},north,{p % 30}\\n" for p, s in zip(people.tolist(), seconds.tolist()))
    return path


def peak(path):
    scheme = survey()
    redis.Redis.from_url(url).flushall()
    with MemoStore(url) as store:
        memos = store.survey(Respondent(scheme, KEYRING))
        summary = Replay(memos, KeepingSink(), CLOCK_KEY, [path], OPTIONS, directory).run()
        assert (summary.people, summary.reports, summary.repeats) == (300, 1200, 0)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


small, large = events("small.csv", 40_000), events("large.csv", 1_800_000)
peak(small)  # what is only loaded and reserved once
print(peak(small), peak(large), large.stat().st_size >> 20)
"""


@pytest.mark.long(part="memory")
def test_memory_stays_when_the_file_grows(redis_url: str, tmp_path: Path) -> None:
    """Holding the large file's 1,800,000 events would take 55 MB as numbers, and more than the file as text.

    Peak memory varies by some 20 MB from run to run, whatever the size of the file.
    """
    said = done(sys.executable, "-W", "ignore", "-c", SCRIPT, redis_url, tmp_path)
    small, large, file_size = map(int, said.split())
    assert file_size >= 45
    assert large - small < 30
