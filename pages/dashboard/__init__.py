"""The dashboard: published results as events, in the pages of any number of viewers."""

from pages.dashboard.routes import Download, Wanted, add_routes
from pages.dashboard.source import Source

__all__ = ["Download", "Source", "Wanted", "add_routes"]
