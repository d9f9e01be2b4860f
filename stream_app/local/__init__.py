"""The stream app over local files: a log, a store, and the app in one process."""

from stream_app.local.embedded import EmbeddedApp
from stream_app.local.store import LocalStore

__all__ = ["EmbeddedApp", "LocalStore"]
