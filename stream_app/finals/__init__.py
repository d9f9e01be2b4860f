"""Finals: what is released of a closed period, decided once. Everything that is published is made of them."""

from stream_app.finals.final import Final, FinalKey, Status, message
from stream_app.finals.guarantees import PublishedGuarantees, published_guarantees
from stream_app.finals.noise import Release, release
from stream_app.finals.reducing import NotCounted, rounded
from stream_app.finals.units import published_sums, sums_of_period, sums_through
