"""Memoised first rounds and the privacy ledger, on Redis."""
