"""Commands for whoever operates servers and stores."""
