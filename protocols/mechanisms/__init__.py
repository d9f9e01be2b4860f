"""Mechanisms: encodings, rounds of noise, the channels they make, and the catalogue of all of them."""

from protocols.mechanisms.catalogue import NAMES, RECORDS, fitting
from protocols.mechanisms.channels import SupportChannel
from protocols.mechanisms.encodings import Direct, Encoding, Unary, bit_flip
from protocols.mechanisms.fresh import FreshHash
from protocols.mechanisms.lifelong import Buckets, Hashed, Threshold, above
from protocols.mechanisms.mechanism import Calibration, Channel
from protocols.mechanisms.places.area import Area
from protocols.mechanisms.places.displacement import PlanarRound, moved
from protocols.mechanisms.places.rounds import PlaceRound, PlanarChannel
from protocols.mechanisms.record import CHOOSERS, MAX_VALUES, MechanismRecord, Use
from protocols.mechanisms.rounds import Flip, MatrixRound, Round, noise_matrix
