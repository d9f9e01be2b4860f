"""Faust as its documentation shows it: a record type, an agent, a tumbling table."""

import os
import time
from datetime import timedelta

import faust


class Report(faust.Record, serializer="json"):
    area: int


app = faust.App(
    "idiomatic",
    broker=f"kafka://{os.environ['BROKER']}",
    datadir=os.environ["DATA"],
    topic_partitions=4,
    topic_replication_factor=1,
    web_enabled=False,
    consumer_auto_offset_reset="earliest",
)
reports = app.topic("idiomatic.reports", value_type=Report)
counts = app.Table("counts", default=int, partitions=4).tumbling(timedelta(hours=1), expires=timedelta(hours=2))
total = int(os.environ["REPORTS"])
seen = 0
began = 0.0


@app.agent(reports)
async def count(stream: faust.StreamT[Report]) -> None:
    global seen, began
    async for report in stream:
        counts[report.area] += 1
        seen += 1
        if seen == total // 10:
            began = time.perf_counter()
        if seen == total:
            print(f"rate {(total - total // 10) / (time.perf_counter() - began)}", flush=True)
            os._exit(0)


if __name__ == "__main__":
    faust.Worker(app, loglevel="WARNING", redirect_stdouts=False).execute_from_commandline()
