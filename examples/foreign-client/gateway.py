"""A small gateway: devices fetch a survey's terms and post JSON reports, the gateway puts them on Kafka."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

from producers.sinks import KafkaSink, Sink
from protocols.errors import DeliveryError
from protocols.scheme import Scheme
from protocols.survey_text import parse_survey
from protocols.wire import REPORT, TERMS, Reject, decode_report, partition_of
from servers.settings import load
from stream_app.kafka import Topics

LONGEST_REPORT = 256 << 10


def serve(scheme: Scheme, sink: Sink, port: int) -> HTTPServer:
    """A server on the loopback address; `serve_forever` runs it."""
    survey = scheme.survey.id

    class Gateway(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == f"/v1/surveys/{survey}":
                self._answer(200, scheme.terms, TERMS)
            else:
                self._answer(404)

        def do_POST(self) -> None:
            size = int(self.headers.get("Content-Length", 0))
            if self.path != "/v1/reports" or size > LONGEST_REPORT:
                self._answer(404 if size <= LONGEST_REPORT else 413)
                return
            report = self.rfile.read(size)
            frame = decode_report(report, {survey: scheme}.get)
            if isinstance(frame, Reject):
                self._answer(422, json.dumps({"reason": frame.reason, "detail": frame.detail}).encode())
                return
            try:
                sink.send(int(partition_of(frame.tokens, sink.partitions)[0]), REPORT, report)
                sink.flush()
            except DeliveryError:
                self._answer(503)
            else:
                self._answer(201)

        def _answer(self, status: int, body: bytes = b"", kind: str = "application/json") -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

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
