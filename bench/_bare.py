"""The same server with a bare handler: it parses the same JSON and answers 201. `python -m bench._bare PORT`."""

import asyncio
import sys

import uvloop

from gateway.http import Answer, Application, Limits, Listener, Request, Response
from protocols.wire import read_json

TAKEN = Response(201, b'{"status":"taken"}')


class Bare(Application):
    def admit(self, request: Request) -> Response | int:
        return 4 << 20

    def handle(self, request: Request, answer: Answer) -> None:
        if request.method == "POST":
            read_json(request.body)
        answer(TAKEN)


async def main(port: int) -> None:
    await Listener(Bare(), Limits()).start("127.0.0.1", port)
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1])))
