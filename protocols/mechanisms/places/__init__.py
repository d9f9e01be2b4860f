"""Places on a grid: the displacement law, its integers, the encoding that draws with them, and its channel."""
