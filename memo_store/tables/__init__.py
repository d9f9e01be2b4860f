"""What the store keeps in Redis: memos, presence, and the values committed for open periods."""
