"""Composition of the other rooms: runs, replays, evaluations and the local stack."""
