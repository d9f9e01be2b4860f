"""The connection to Redis: batches, retries, shards, and the check that the store has lost no data."""

from memo_store.connection.epochs import Seen
from memo_store.connection.layout import CHUNK, Placed, read_fields, shard_key
from memo_store.connection.link import Command, Link
