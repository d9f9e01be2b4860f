"""Attacks on published tables: what readers of counts reach."""
