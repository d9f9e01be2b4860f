"""Putting the rooms together: runs, replays and the local stack."""
