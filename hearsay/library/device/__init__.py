"""A device for one person's machine: limits, state in one SQLite file, HTTP to a gateway that may be anybody."""
