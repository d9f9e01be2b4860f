"""Composition of `hearsay serve` and `hearsay gateway`: a log, the surveys, who may send, and HTTP in front."""
