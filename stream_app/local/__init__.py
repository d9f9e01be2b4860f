"""The embedded app: counting and merging in one process, over a local log and a local store."""

from stream_app.local.damage import DamagedLog, check_state, damaged_logs
from stream_app.local.embedded import EmbeddedApp
from stream_app.local.store import DirectoryFollower, LocalStore
