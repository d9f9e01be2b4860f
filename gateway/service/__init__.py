"""The gateway as a service: its routes, and the one thread that writes what they take."""

from gateway.service.holding import Holder
from gateway.service.metrics import WATCHED, Metrics
from gateway.service.routes import Gateway, Page, Surveys, Watching, metrics_page
from gateway.service.senders import DEVICE_RATE, EDGE_RATE, Senders
from gateway.service.writing import Log, Writer

__all__ = [
    "DEVICE_RATE",
    "EDGE_RATE",
    "WATCHED",
    "Gateway",
    "Holder",
    "Log",
    "Metrics",
    "Page",
    "Senders",
    "Surveys",
    "Watching",
    "Writer",
    "metrics_page",
]
