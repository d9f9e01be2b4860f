"""One file per family of mechanisms: how each is built for a budget, and its record, which the catalogue lists."""
