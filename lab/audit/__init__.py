"""Attacks on a survey at their best, in closed form, and what an audit reports."""
