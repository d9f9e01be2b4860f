"""What the store keeps in Redis: memos, and the cells committed in open periods."""
