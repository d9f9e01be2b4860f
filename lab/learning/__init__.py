"""Learning from tables with known noise: synthetic records, and a classifier. Estimates go in, nothing raw; pure."""
