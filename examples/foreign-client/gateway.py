"""A gateway for devices without a Kafka client: they post single JSON reports, and it writes them to the topic.

    python gateway.py survey.yaml --port 8080

The gateway sees only what devices send: noisy answers and tokens. It reads the survey, to give devices its terms, and
answers 201 when all replicas have the report. The cluster is that of HEARSAY_KAFKA_*.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

from producers.sinks import KafkaSink, Sink
from protocols.errors import DeliveryError, SurveyError
from protocols.mechanisms import Direct, Flip
from protocols.scheme import Scheme
from protocols.survey_text import parse_survey
from protocols.wire import REPORT
from servers.settings import load
from stream_app.kafka import Topics

LONGEST_REPORT = 4096


def terms(scheme: Scheme) -> dict[str, Any]:
    """What a device must know to answer a survey."""
    survey = scheme.survey
    if len(scheme.questions) > 1 and not scheme.discloses:
        raise SurveyError(f"survey {survey.id!r} has solution {survey.solution}", "the example client knows smp only")
    if scheme.takes_turns:
        raise SurveyError(f"survey {survey.id!r} has one_in", "the example client answers in every period")
    attributes = []
    for question in scheme.questions:
        mechanism = question.mechanism
        rounds = (mechanism.first, mechanism.second or mechanism.first)
        if not (isinstance(mechanism.encoding, Direct) and all(isinstance(each, Flip) for each in rounds)):
            raise SurveyError(
                f"{question.name!r} is asked with {mechanism.name}", "the example client knows grr, l-grr"
            )
        attributes.append(
            {
                "name": question.name,
                "values": question.attribute.values,
                "bytes": mechanism.encoding.answer.bytes,
                "memoised": survey.longitudinal,
                "first": vars(mechanism.first),
                "second": vars(mechanism.second) if mechanism.second else None,
            }
        )
    return {
        "survey": survey.id,
        "fingerprint": scheme.fingerprint,
        "start": survey.start.isoformat(),
        "period_seconds": survey.period.total_seconds(),
        "horizon": survey.horizon,
        "attributes": attributes,
    }


def serve(scheme: Scheme, sink: Sink, port: int) -> HTTPServer:
    """A server on the loopback address; `serve_forever` runs it."""
    known = json.dumps(terms(scheme)).encode()

    class Gateway(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/terms" else 404)
            self.end_headers()
            self.wfile.write(known if self.path == "/terms" else b"")

        def do_POST(self) -> None:
            self.send_response(self._take() if self.path == "/reports" else 404)
            self.end_headers()

        def _take(self) -> int:
            size = int(self.headers.get("Content-Length", 0))
            if size > LONGEST_REPORT:
                return 413
            report = self.rfile.read(size)
            try:
                token = int(json.loads(report)["token"], 16)
            except (ValueError, KeyError, TypeError):
                return 400
            try:
                sink.send(token % sink.partitions, REPORT, report)
                sink.flush()
            except DeliveryError:
                return 503
            return 201

        def log_message(self, *_: object) -> None:
            """Log nothing: a log of requests would record who reports when."""

    return HTTPServer(("127.0.0.1", port), Gateway)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Take single JSON reports over HTTP and put them on Kafka.")
    parser.add_argument("survey", type=Path)
    parser.add_argument("--port", type=int, default=8080)
    chosen = parser.parse_args(arguments)
    scheme = Scheme(parse_survey(chosen.survey.read_text(), str(chosen.survey)))
    kafka = load().kafka
    with serve(scheme, KafkaSink(kafka, Topics(kafka.prefix).reports), chosen.port) as server:
        server.serve_forever()


if __name__ == "__main__":
    main()
