"""A mobility report as an Arrow table, as flat tables and as a page."""
