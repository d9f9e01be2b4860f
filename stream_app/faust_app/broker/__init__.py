"""Asking the broker: offsets, the survey registry, and retries while it is unavailable."""
