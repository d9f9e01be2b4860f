"""Reading published results, showing them on a terminal, and writing them to files."""
