"""Attacks on a survey at their best: computed in closed form, and measured with the devices' own code."""
