"""How commands speak to people and programs."""
