"""Does each promise have a test that can fail? `python -m tests.mutations` breaks one line at a time, and looks."""
