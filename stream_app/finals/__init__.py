"""Finals: what is released of a closed period, decided once. Everything that is published is made of them."""

from stream_app.finals.final import Final, FinalKey, Status, message
from stream_app.finals.guarantees import PublishedGuarantees, published_guarantees
from stream_app.finals.noise import Release, release
from stream_app.finals.reducing import NotCounted, rounded

__all__ = [
    "Final",
    "FinalKey",
    "NotCounted",
    "PublishedGuarantees",
    "Release",
    "Status",
    "message",
    "published_guarantees",
    "release",
    "rounded",
]
