"""What readers of published results learn about one device: the central figure (PROTOCOLS 11)."""

from protocols.privacy.central.composition import Losses, together
from protocols.privacy.central.families import walks_of
from protocols.privacy.central.figure import CentralLoss, central, collector, constant_presence_cap, eps_1_for
from protocols.privacy.central.walks import Walks

__all__ = [
    "CentralLoss",
    "Losses",
    "Walks",
    "central",
    "collector",
    "constant_presence_cap",
    "eps_1_for",
    "together",
    "walks_of",
]
