"""Places on a grid: projection, the displacement law, its integers, the encoding that draws with them, its channel."""
