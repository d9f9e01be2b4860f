"""Long ordeals, run by hand: `make chaos`."""
