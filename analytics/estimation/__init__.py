"""Estimates with error bars from support counts, and histograms made consistent."""

from analytics.estimation.consistent_shares import consistent_shares, decimals, shortened
from analytics.estimation.estimates import drawn_share, estimate, exact
from analytics.estimation.likelihood import most_likely
from analytics.estimation.noised import CellNoise
from analytics.estimation.ordered import early_stopped
from analytics.estimation.pairs import shrunk
from analytics.estimation.places import fitted_places
from analytics.estimation.votes import nearest, norm_sub
