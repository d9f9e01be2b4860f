"""Everything that a browser sees: results as events, the page that shows them, and the files it is made of."""
