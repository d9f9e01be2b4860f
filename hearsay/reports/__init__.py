"""Published results: where they are read from, and how they are shown and written."""
