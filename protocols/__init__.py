"""Survey, mechanisms, exact guarantees, randomness and wire formats: the foundation."""
