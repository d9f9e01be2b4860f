"""Estimates with error bars from support counts, and histograms made consistent."""

from analytics.estimation.consistent_shares import consistent_shares, decimals, most_likely, shortened
from analytics.estimation.estimates import drawn_share, estimate, exact, quantile
from analytics.estimation.pairs import shrunk
from analytics.estimation.places import fitted_places
from analytics.estimation.stopping import early_stopped
from analytics.estimation.votes import CellNoise, nearest, norm_sub
