"""The Faust app: the pure counting and merging of this room, fed by Kafka and kept by Kafka (DESIGN 5)."""

from stream_app.faust_app.logs import configure_logs
from stream_app.faust_app.options import WorkerOptions
from stream_app.faust_app.worker import run_worker, wait_for_topics

__all__ = ["WorkerOptions", "configure_logs", "run_worker", "wait_for_topics"]
