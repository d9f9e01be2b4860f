"""What the store keeps in Redis: memos, presence, and the values committed for open periods."""

from memo_store.tables.presence import Standing

__all__ = ["Standing"]
