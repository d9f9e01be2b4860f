"""What a client of TLS says first. To answer takes a millisecond, ten times what a report takes.

It is looked at, not read: a handshake begins when it can be answered at once.
"""

import asyncio
import socket

HEAD_BYTES = 5
"""Of a record: its type, version and length."""
HANDSHAKE = 22
MOST_BYTES = 16 << 10
"""A record has no more; what says otherwise is for the TLS library to refuse."""


async def whole_hello(accepted: socket.socket) -> None:
    """Wait until the first record of a client has come, or whatever it is instead of one."""
    await _readable(accepted)
    wanted = HEAD_BYTES
    if len(_first(accepted)) < wanted:
        await _readable(accepted, wanted)
    head = _first(accepted)
    if len(head) < wanted or head[0] != HANDSHAKE:
        return
    wanted += min(int.from_bytes(head[3:]), MOST_BYTES)
    await _readable(accepted, wanted)


def _first(accepted: socket.socket) -> bytes:
    try:
        return accepted.recv(HEAD_BYTES, socket.MSG_PEEK)
    except OSError:  # the client has left, which its handshake finds as well
        return b""


async def _readable(accepted: socket.socket, size: int = 1) -> None:
    """Wait until so many bytes can be read, or no more will come."""
    loop = asyncio.get_running_loop()
    come: asyncio.Future[None] = loop.create_future()
    accepted.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, size)
    loop.add_reader(accepted, _settle, come)
    try:
        await come
    finally:
        loop.remove_reader(accepted)
        accepted.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)


def _settle(come: asyncio.Future[None]) -> None:
    if not come.done():
        come.set_result(None)
