"""Surveys, mechanisms, exact guarantees, randomness and wire formats. Imports no other room."""
