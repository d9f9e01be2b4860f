"""The Faust app: counting and merging fed by Kafka, with state kept in changelogs."""

from stream_app.faust_app.acceptance import (
    QuarantinedSurvey,
    check_cluster,
    quarantined_surveys,
    stuck_partitions,
    write_state,
)
from stream_app.faust_app.agents import WorkerOptions
from stream_app.faust_app.app import run_worker, wait_for_topics
from stream_app.faust_app.monitoring import REGISTRY, Health, note_forecasts, note_refused_result, note_verdict
from stream_app.faust_app.writing import owner_of
