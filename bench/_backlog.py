"""The CPU seconds of a worker that counts backlogs of some periods to finals: `python -c ... BOOTSTRAP APP DIRECTORY`.

`bench.against` runs this text in several trees, so that each has its own modules. A survey runs for months, so most
periods are not the first one, in which tables of tokens grow. What the worker takes to start is not counted.
"""

import os
import resource
import sys
from pathlib import Path

from bench.stream import (  # type: ignore[attr-defined]  # of each tree
    KEY,
    ROWS,
    SESSION,
    close,
    fill,
    make,
    wait_for,
    workers,
)
from servers.settings import KafkaSettings

FRAMES, PERIODS = 2000, 4


def main(bootstrap: str, app: str, directory: str) -> None:
    kafka = KafkaSettings(bootstrap=bootstrap)
    topics = make(kafka, app)
    with workers(1, kafka, topics, KEY, Path(directory) / app, *SESSION) as (worker,):
        worker.wait_until_ready()
        to_start = children_seconds()
        for period in range(PERIODS):
            worker.pause()
            fill(kafka, topics, FRAMES, period)
            worker.resume()
            wait_for(worker, FRAMES * ROWS * (period + 1))
            close(kafka, topics, worker, period)
        worker.leave()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(used.ru_utime + used.ru_stime - to_start)


def children_seconds() -> float:
    """The CPU seconds of this process's children, while they run."""
    pids = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    fields = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in pids]
    return sum(int(found[11]) + int(found[12]) for found in fields) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main(*sys.argv[1:])
