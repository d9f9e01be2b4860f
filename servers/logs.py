"""Structured logs: one JSON object a line, or readable lines on a terminal. Never the contents of records."""

import logging
import sys
import time
from typing import Any

import structlog

from servers.printable import printable

LIBRARIES = ("aiokafka", "faust", "mode", "aiohttp", "kafka", "asyncio")
NOTICES = ("protocols.arrays.compiling",)
"""What the command line shows as plain lines: in a log that a program reads, they are lines of JSON as all others."""
REPEAT_SECONDS = 5.0
"""While the broker is unavailable, libraries log that thousands of times a minute; one line in this time is passed."""


class RateLimitFilter(logging.Filter):
    """Passes each kind of line of the libraries once in a while, with the number of lines held back since."""

    def __init__(self) -> None:
        super().__init__()
        self._last: dict[tuple[str, int], float] = {}
        self._held: dict[tuple[str, int], int] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.name.partition(".")[0] not in LIBRARIES:
            return True
        kind = record.name, record.lineno
        now = time.monotonic()
        if now - self._last.get(kind, -REPEAT_SECONDS) < REPEAT_SECONDS:
            self._held[kind] = self._held.get(kind, 0) + 1
            return False
        self._last[kind] = now
        record.held_back = self._held.pop(kind, 0)
        return True


def _note_held_back(_: Any, __: str, event: structlog.types.EventDict) -> structlog.types.EventDict:
    held = getattr(event.get("_record"), "held_back", 0)
    return {**event, "held_back": held} if held else event


def _printable(_: Any, __: str, event: structlog.types.EventDict) -> structlog.types.EventDict:
    return {name: printable(value) if isinstance(value, str) else value for name, value in event.items()}


def configure_logs(level: str = "INFO") -> None:
    """Write the logs of this process, ours and the libraries', to standard error."""
    shared: list[structlog.types.Processor] = [
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    renderer: list[structlog.types.Processor] = (
        [_printable, structlog.dev.ConsoleRenderer()]
        if sys.stderr.isatty()
        else [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, _note_held_back],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *renderer],
        )
    )
    handler.addFilter(RateLimitFilter())
    logging.basicConfig(level=level, handlers=[handler], force=True)
    for library in LIBRARIES:
        logging.getLogger(library).setLevel(logging.WARNING)
    logging.getLogger("kafka.net.selector").setLevel(logging.ERROR)  # it warns of clients that poll, as ours do
    if not sys.stderr.isatty() and logging.getLogger().isEnabledFor(logging.INFO):
        for notices in map(logging.getLogger, NOTICES):
            notices.handlers, notices.propagate = [], True
