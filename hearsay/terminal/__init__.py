"""Terminal output: console, progress, errors and exit codes."""
