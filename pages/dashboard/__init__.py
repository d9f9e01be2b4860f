"""The dashboard: published results as events, in the pages of any number of viewers."""

from pages.dashboard.routes import Dashboard, Wanted
from pages.dashboard.source import Source
