"""Where reports come from: fleets, scenarios, replayed events, and the sinks they are sent to."""
