"""Mechanisms: encodings, rounds of noise, the channels they make, and the catalogue of all of them."""

from protocols.arrays.aliases import Values
from protocols.mechanisms.catalogue import NAMES, RECORDS, fitting
from protocols.mechanisms.channels import Channel, MatrixChannel, SupportChannel
from protocols.mechanisms.encodings import Direct, Encoding
from protocols.mechanisms.lifelong import Buckets, Hashed
from protocols.mechanisms.mechanism import Budget, Calibration
from protocols.mechanisms.places.channel import PlanarChannel
from protocols.mechanisms.places.displacement import PlanarRound
from protocols.mechanisms.places.losses import moved as moved_by
from protocols.mechanisms.record import CHOOSERS, MechanismRecord, Use
from protocols.mechanisms.rounds import Flip, MatrixRound

__all__ = [
    "CHOOSERS",
    "NAMES",
    "RECORDS",
    "Buckets",
    "Budget",
    "Calibration",
    "Channel",
    "Direct",
    "Encoding",
    "Flip",
    "Hashed",
    "MatrixChannel",
    "MatrixRound",
    "MechanismRecord",
    "PlanarChannel",
    "PlanarRound",
    "SupportChannel",
    "Use",
    "Values",
    "fitting",
    "moved_by",
]
