"""HTTP in: reports of devices and edges, judged at the door, gathered into frames and written to a log."""
