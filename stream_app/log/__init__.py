"""What counting and merging share: reading a log in order, state records, and ordered flushes."""
