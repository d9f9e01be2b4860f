"""A mobility report as Arrow, as files and as a page."""
