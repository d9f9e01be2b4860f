"""Survey, mechanisms, exact guarantees, randomness and wire formats: the foundation, which imports none of our rooms."""
