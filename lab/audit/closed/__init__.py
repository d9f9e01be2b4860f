"""Attacks in closed form: what the best attacker gains, computed from a survey's channels."""
