"""Attacks on a survey at their best, in closed form, and verdicts on what was collected."""
