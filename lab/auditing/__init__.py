"""Audits composed: a survey, devices of its own, the way their reports take, and the figures."""
