"""The CPU seconds of a worker that counts a backlog to its final: `python -c ... BOOTSTRAP APP DIRECTORY`.

`bench.against` runs this text in several trees, so that each has its own modules.
"""

from __future__ import annotations

import resource
import sys
from pathlib import Path

from bench.stream import KEY, ROWS, close, fill, make, wait_for, workers  # type: ignore[attr-defined]  # of each tree
from servers.settings import KafkaSettings

FRAMES = 4000


def main(bootstrap: str, app: str, directory: str) -> None:
    kafka = KafkaSettings(bootstrap=bootstrap)
    topics = make(kafka, app)
    fill(kafka, topics, FRAMES, 0)
    with workers(1, kafka, topics, KEY, Path(directory) / app) as (worker,):
        worker.wait_until_ready()
        wait_for(worker, FRAMES * ROWS)
        close(kafka, topics, worker, 0)
        worker.leave()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(used.ru_utime + used.ru_stime)


if __name__ == "__main__":
    main(*sys.argv[1:])
