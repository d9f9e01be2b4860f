"""Logs, metrics and health pages of a worker."""
