"""Where reports come from: fleets, scenarios, replayed events, and the sinks they fill."""

from producers.fleet import Fleet
from producers.sinks.base import Sink

__all__ = ["Fleet", "Sink"]
