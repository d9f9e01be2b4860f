"""A load generator in a process of its own: `python -m bench._load PORT CONNECTIONS SECONDS REPORTS HEADER-OF-REPORTS`.

Every connection sends a request, waits for its answer, and sends the next. Prints a line of JSON.
"""

import asyncio
import json
import secrets
import sys
import time
from typing import Any

import uvloop

WARM_UP_SECONDS = 1.0


class Load:
    """What all connections have seen."""

    def __init__(self, head: str, tail: str, reports: int) -> None:
        self.head, self.tail, self.reports = head.encode(), tail.encode(), reports
        self.token = secrets.randbits(62)
        self.answered = self.refused = self.all = 0
        self.seconds: list[float] = []
        self.running = True

    def request(self) -> bytes:
        first, self.token = self.token, self.token + self.reports * 7_919
        tokens = range(first, self.token, 7_919)
        body = b",".join([b"%s%016x%s" % (self.head, token % (1 << 64) or 1, self.tail) for token in tokens])
        if self.reports > 1:
            body = b"[" + body + b"]"
        head = b"POST /v1/reports HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: "
        return head + b"%d\r\n\r\n" % len(body) + body


class Client(asyncio.Protocol):
    def __init__(self, load: Load) -> None:
        self.load = load
        self.buffer = b""

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.send()

    def send(self) -> None:
        request = self.load.request()
        self.at = time.perf_counter()
        self.transport.write(request)

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        end = self.buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        at = self.buffer.find(b"content-length: ") + 16
        whole = end + 4 + int(self.buffer[at : self.buffer.find(b"\r", at)])
        if len(self.buffer) < whole:
            return
        self.load.all += 1
        self.load.answered += self.buffer[9:12] == b"201"
        self.load.refused += self.buffer[9:12] != b"201"
        self.load.seconds.append(time.perf_counter() - self.at)
        self.buffer = self.buffer[whole:]
        if self.load.running:
            self.send()


async def main(port: int, connections: int, seconds: float, reports: int, head: str, tail: str) -> None:
    load, loop = Load(head, tail, reports), asyncio.get_running_loop()
    for _ in range(connections):
        await loop.create_connection(lambda: Client(load), "127.0.0.1", port)
    await asyncio.sleep(WARM_UP_SECONDS)
    load.answered = load.refused = 0
    load.seconds.clear()
    began = time.perf_counter()
    await asyncio.sleep(seconds)
    took = time.perf_counter() - began
    answered, refused, times = load.answered, load.refused, sorted(load.seconds)
    load.running = False
    p99 = times[int(0.99 * len(times))] if times else float("nan")
    found = {"per_second": answered / took, "refused": refused, "answered": load.all, "p99": p99}
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    port, connections, seconds, reports, head, tail = sys.argv[1:]
    uvloop.run(main(int(port), int(connections), float(seconds), int(reports), head, tail))
