"""One small file of each kind of state of release 0.2.0, which later releases must read.

`python -m tests.helpers.states` has written them to tests/states/of-0.2.tar.xz. They are not made again: a release that
changes a form migrates what is there, and adds its own. tests/test_states.py opens each.
"""

import json
import shutil
import tarfile
import tempfile
from pathlib import Path

from gateway.door import Chain, KeyState
from gateway.door.keys import OpenKey
from gateway.service import StateFile
from lab.seeded_keyrings import seeded_keyring
from protocols.scheme import Scheme
from protocols.survey_text import parse_survey
from stream_app.counting.judging import Record
from stream_app.counting.partition_counter import PartitionCounter
from stream_app.log.flushes import Output, Write
from stream_app.merging.merger import Merger
from tests.clients.libraries import LIBRARIES, Clock, open_device
from tests.helpers.nursery import run
from tests.stream_app.worlds import KEY, SCHEME, SURVEYS, Reports, Row, Tick, wire

KEPT = Path(__file__).parents[1] / "states" / "of-0.2.tar.xz"
TEXT = (
    "{id: tiny, start: 2026-01-01T00:00:00Z, period: 1d, horizon: 3, eps_inf: 1, eps_1: 0.5, memo_cap: 2, minimum: 5, "
    "clock: source, grace: 36h, attributes: [{name: a, values: [x, y, z], other: z}]}"
)
BEGIN = 1767268800.0  # 2026-01-01, noon
OPEN = OpenKey(survey="tiny", fingerprint="f" * 32, period=3, key=bytes(range(32)), until=BEGIN + 86_400)
KEYS = KeyState(chain=Chain(hour=int(BEGIN // 3600), link=bytes(range(32, 64))), keys=(OPEN,))


def make(root: Path) -> None:
    """Write all states into a directory."""
    (root / "survey.yaml").write_text(TEXT)
    scheme = Scheme(parse_survey(TEXT))
    (root / "terms.json").write_bytes(scheme.terms)
    record = {"value": scheme.survey.model_dump_json(), "fingerprint": scheme.fingerprint, "timestamp": 1000 * BEGIN}
    (root / "survey-record.json").write_text(json.dumps(record))
    ran = run("run", str(root / "survey.yaml"), "--devices", "30", "--periods", "2", "--data", str(root / "data"))
    assert ran.returncode == 0, ran.stderr
    shutil.rmtree(root / "data" / "reports")  # pages, which nothing reads
    for left in ("redis.log", "redis.pid"):
        (root / "data" / "redis" / left).unlink()
    for library in LIBRARIES:
        clock = Clock(BEGIN)
        (root / library).mkdir()
        with open_device(library, root / library / "device", clock) as device:
            device.join(scheme.terms, trust_first_use=True)
            device.settle("tiny", {"a": "x"})
            device.confirm("tiny", 0)
            clock.seconds += 86_400
            device.settle("tiny", {"a": "y"})
    StateFile(root / "gateway.state").update(lambda before: KEYS)
    (root / "topics.json").write_text(json.dumps(topics()))


def topics() -> dict[str, list[tuple[str, str]]]:
    """Reports, and what a counter and a merge write while one period is closed and another is open: key and value."""
    events = [Reports(0, (Row(1), Row(2))), Tick(0), Reports(1, (Row(3),))]
    records = [Record(offset, *wire(event)) for offset, event in enumerate(events)]
    found = {"reports": [(one.content_type or "", (one.value or b"").hex()) for one in records]}
    counter = PartitionCounter(0, 1, SURVEYS.get, KEY)
    for record in records:
        counter.apply(record)
    merger, merged = Merger(0, 1, SURVEYS.get, seeded_keyring(1)), 0
    for reader, table in ((counter, "counting"), (merger, "merging")):
        for item in reader.flush():
            if isinstance(item, Write) and item.value is not None:
                found.setdefault(table, []).append((item.key.decode(), item.value.hex()))
            elif isinstance(item, Output):
                found.setdefault(item.topic, []).append((item.key.decode(), item.value.hex()))
                if item.topic == "partials":
                    merger.apply(merged, item.value, 0, SCHEME.survey.id.encode())
                    merged += 1
    return found


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name, tarfile.open(KEPT, "w:xz") as kept:
        make(Path(name))
        kept.add(name, ".", filter=lambda entry: entry.replace(uid=0, gid=0, uname="", gname="", deep=False))
