"""`hearsay forecast`: series from files and from published results, and how their forecasts are shown."""
