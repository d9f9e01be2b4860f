"""Composition of the other rooms: runs, replays and the local stack."""
