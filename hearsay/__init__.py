"""Command line and composition: the only place that sees every room."""
