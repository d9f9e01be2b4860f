"""The table of tokens, and the compiled loops over tables in memory."""
