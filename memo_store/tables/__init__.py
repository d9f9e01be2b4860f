"""What the store keeps in Redis: memos, presence, and the cells committed in open periods."""
