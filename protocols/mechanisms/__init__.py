"""Mechanisms: encodings, rounds of noise, the channels they make, and the catalogue of all of them."""

from protocols.arrays.aliases import Values
from protocols.mechanisms.catalogue import NAMES, RECORDS, fitting
from protocols.mechanisms.channels import Channel, MatrixChannel, SupportChannel
from protocols.mechanisms.encodings import Direct, Encoding
from protocols.mechanisms.mechanism import Calibration
from protocols.mechanisms.record import CHOOSERS, MechanismRecord, Use
from protocols.mechanisms.rounds import Flip

__all__ = [
    "CHOOSERS",
    "NAMES",
    "RECORDS",
    "Calibration",
    "Channel",
    "Direct",
    "Encoding",
    "Flip",
    "MatrixChannel",
    "MechanismRecord",
    "SupportChannel",
    "Use",
    "Values",
    "fitting",
]
