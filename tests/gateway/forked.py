"""`hearsay serve` and `hearsay gateway` as processes that can be killed and started again."""

from pathlib import Path

from bench._processes import ServerProcess
from servers.ports import free_port


class Forked(ServerProcess):
    """A `hearsay` command that listens on a port of its own."""

    def __init__(self, log: Path, *words: str, **environment: str) -> None:
        port = free_port()
        super().__init__(log, port, "-m", "hearsay", *words, "--port", str(port), **environment)
