"""Fleets, scenarios, replay and sinks: where reports come from."""
