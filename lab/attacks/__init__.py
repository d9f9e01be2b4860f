"""Attacks carried out on reports of devices whose values the audit knows; pure."""
