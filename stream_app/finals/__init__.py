"""Finals: what is released of a closed period, decided once. Everything that is published is made of them."""

from stream_app.finals.final import Final, FinalKey, Status, message
from stream_app.finals.guarantees import PublishedGuarantees, published_guarantees
from stream_app.finals.noise import Noise
from stream_app.finals.reducing import NotCounted, rounded
from stream_app.finals.windows import (
    exact_windows,
    noised_period,
    noised_windows,
    released_units,
    sum_of_period,
    sums_through,
    tables_of,
    with_visits,
)
