"""Audits composed: a survey, devices of its own, the way their reports take, the figures; and of what was collected."""
