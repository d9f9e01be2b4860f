"""People from aggregates, published ones or a user's own; pure."""
