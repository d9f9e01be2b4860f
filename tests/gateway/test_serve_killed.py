"""`hearsay serve` killed under load: what was confirmed is counted once, in its period, and nothing else is."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from random import Random

import pyarrow as pa

from hearsay.data_directory import DataDirectory
from hearsay.serving.embedded_log import EmbeddedLog
from protocols.scheme import Scheme
from protocols.survey_text import parse_survey
from stream_app.local.log import LocalLog
from tests.gateway.clients import Crowd, join
from tests.gateway.forked import Forked, nursery
from views.local import collector
from views.reading import Results

KILLS, CLIENTS, REPORTS = 4, 8, 400
SURVEY = """
id: buttons
start: {start}
period: 4s
grace: 2s
eps_inf: 4
eps_1: 2
horizon: 7
minimum: 0
attributes:
  - {{name: colour, values: [red, green, blue]}}
"""


def reports_of(scheme: Scheme, count: int) -> Iterator[dict[str, object]]:
    """Reports of the period that it is now; some cannot be counted."""
    random = Random(1)
    for _ in range(count):
        period = scheme.survey.period_of(datetime.now(UTC))
        yield {
            "survey": "buttons",
            "fingerprint": scheme.fingerprint,
            "period": f"{period:08x}",
            "token": secrets.token_hex(8),
            "gap": random.choice(["0001", "0002", "0007"]) if random.random() < 0.95 else "0009",
            "answers": {"colour": f"0{random.randrange(3)}"},
        }


def counted_in(log: Path) -> dict[int, dict[int, tuple[int, int]]]:
    """What the log says, read without the app: the gap and the answer of each token in each period, until it closed."""
    found: dict[int, dict[int, tuple[int, int]]] = {}
    through, reader = -1, LocalLog(log, 0)
    for record in reader.read():
        if str(record.content_type).endswith("clock+json"):
            through = max(through, json.loads(record.value or b"")["through"])
            continue
        table = pa.ipc.open_stream(record.value).read_all()
        period = int(table.schema.metadata[b"period"].decode(), 16)
        if period > through:
            for token, gap, colour in zip(*(table[name].to_pylist() for name in table.column_names), strict=True):
                found.setdefault(period, {}).setdefault(token, (gap, colour))
    reader.close()
    return found


def test_what_was_confirmed_is_counted_once_after_every_kill(tmp_path: Path) -> None:
    """Failure would look like: a confirmed report that no final has, or a final with more than the log."""
    text = SURVEY.format(start=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))
    file, data = tmp_path / "survey.yaml", tmp_path / "data"
    file.write_text(text)
    scheme, random = Scheme(parse_survey(text)), Random(7)
    with nursery() as parent:
        server = Forked(parent, ["serve", str(file), "--data", str(data)], tmp_path / "serve.log").start()
        server.wait_until_ready()
        crowd = Crowd([server.port], reports_of(scheme, REPORTS), pause=0.02)
        threads = crowd.start(CLIENTS)
        for _ in range(KILLS):
            time.sleep(random.uniform(0.0, 0.2))
            server.kill()
            server.start().wait_until_ready()
        join(threads)
        assert server.leave() == 0, server.log.read_text()
    end = datetime.now(UTC).timestamp() + 3600
    directory = DataDirectory(data)
    keys = directory.clock_key(), directory.presence_key()
    with collector(directory.collector, [scheme.survey], *keys) as app:
        EmbeddedLog(app, [scheme.survey], now=lambda: end, elapsed=count(step=3600).__next__)  # nobody reports any more
        finals = {final.period: final for final in Results(app.store).histograms("buttons")}
    counted = counted_in(directory.collector / "log" / "0.log")
    sent = {int(str(report["token"]), 16): report for report in crowd.sent}
    assert {json.loads(body)["reason"] for _, body in crowd.others} == {"bad-gap"}
    assert len(crowd.taken) > REPORTS // 2
    for report in crowd.taken:
        assert int(report["token"], 16) in counted[int(report["period"], 16)]
    for period, rows in counted.items():
        for token, (gap, colour) in rows.items():  # nothing but what devices sent, as they sent it
            report = sent[token]
            answer = int(report["answers"]["colour"], 16)
            assert (int(report["period"], 16), int(report["gap"], 16), answer) == (period, gap, colour)
        final = finals[period]
        (statistics,) = [attribute.statistics for attribute in final.attributes]
        assert statistics is not None and statistics.supports is not None
        assert final.n == len(rows)
        totals = [sum(colour == value for _, colour in rows.values()) for value in range(3)]
        assert statistics.supports.sum(axis=0).tolist() == totals
    assert sum(final.n for final in finals.values()) == sum(map(len, counted.values()))
