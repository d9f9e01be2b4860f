"""What a worker says about itself, and that it can say so whatever it is doing."""

import socket
import urllib.error
import urllib.request

from hearsay.serving.worker import serve_pages, worker_pages
from servers.ports import free_port
from stream_app.faust_app.monitoring import STUCK_SECONDS, Health


def ask(port: int, page: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{page}", timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_a_worker_answers_while_its_event_loop_is_busy_and_is_not_ready_before_it_says_so() -> None:
    port = free_port()
    with serve_pages("127.0.0.1", port) as health, socket.create_connection(("127.0.0.1", port)):  # who asks nothing
        assert ask(port, "/ready") == (503, '{"ready": false}')
        health.ready = lambda: True
        asked = [ask(port, page) for page in ("/live", "/ready")]  # by this thread, which runs no event loop
        assert asked == [(200, '{"live": true}'), (200, '{"ready": true}')]
        assert "hearsay_reports" in ask(port, "/metrics")[1]
        assert ask(port, "/other")[0] == 404


def test_it_does_not_live_if_nothing_has_happened_for_long() -> None:
    now = 1000.0
    health = Health(lambda: now)
    assert health.live
    now += STUCK_SECONDS
    assert not health.live
    assert worker_pages(health)["/live"]().status == 503
    health.beat()
    assert health.live
