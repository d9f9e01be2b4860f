"""A mobility report as one HTML file."""
