"""Nothing about senders is written anywhere: no address, no token, no report, in logs, errors and metrics."""

import json
import socket
import struct
from contextlib import closing, suppress
from pathlib import Path

from bench._processes import ServerProcess
from protocols.wire import REPORT
from servers.ports import free_port
from tests.gateway.clients import Crowd
from tests.gateway.world import report, scheme
from tests.helpers.certificates import Authority

HERE = "127.0.0.7"  # an address of this machine that nothing else uses


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), 30, source_address=(HERE, 0))


def test_no_log_and_no_metric_has_an_address_a_token_or_a_report(tmp_path: Path) -> None:
    """Every way to end a connection badly is tried, with and without TLS, at the most talkative level.

    Metrics have a port of their own, where they need no credential.
    """
    of = scheme()
    file = tmp_path / "survey.yaml"
    file.write_text(json.dumps(of.survey.model_dump(mode="json", exclude_defaults=True) | {"minimum": 0}))
    authority = Authority(tmp_path / "tls")
    certificate, key = authority.issue("server")
    tls = ["--tls-certificate", str(certificate), "--tls-key", str(key), "--client-ca", str(authority.certificate)]
    said = []
    for number, more in enumerate(([], tls)):
        log, port, web = tmp_path / f"serve-{number}.log", free_port(), free_port()
        words = ["-m", "hearsay", "serve", str(file), "--data", str(tmp_path / f"data-{number}")]
        words += ["--log-level", "DEBUG", "--port", str(port), "--web-port", str(web), *more]
        with ServerProcess(log, web, *words).serving() as server:
            sent = report(of)
            for body in (json.dumps(sent).encode(), b"\xff" * 50, b""):
                for end in ("close", "reset", "half"):
                    with closing(connected(port)) as connection:
                        head = b"POST /v1/reports HTTP/1.1\r\nhost: localhost\r\ncontent-type: %b\r\n" % REPORT.encode()
                        connection.sendall(head + b"content-length: %d\r\n\r\n%b" % (len(body), body))
                        if end == "reset":
                            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                        elif end == "half":
                            with suppress(OSError):  # the server may have ended the connection already
                                connection.shutdown(socket.SHUT_WR)
                                connection.recv(1000)
            if not more:
                crowd = Crowd([port], iter([sent]))
                for thread in crowd.start(1):
                    thread.join(60)
                said.append(asked(port, "/metrics"))
            watched = {path: asked(web, path) for path in ("/live", "/ready", "/metrics", "/v1/surveys")}
            assert '{"live": true}' in watched["/live"] and '{"ready": true}' in watched["/ready"]
            assert "hearsay_gateway_ready 1.0" in watched["/metrics"] and "404" in watched["/v1/surveys"]
            said += watched.values()
            assert server.leave() == 0, log.read_text()
            said.append(log.read_text())
    text = "\n".join(said)
    assert "hearsay_gateway" in text and "Collecting" in text
    assert HERE not in text
    for secret in (sent["token"], sent["fingerprint"] + '","period', '"answers"'):
        assert secret not in text


def asked(port: int, path: str) -> str:
    """All that is answered, head and body."""
    with closing(connected(port)) as connection:
        connection.sendall(b"GET %b HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n" % path.encode())
        parts = []
        while data := connection.recv(65536):
            parts.append(data)
    return b"".join(parts).decode()
