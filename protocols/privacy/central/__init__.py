"""What readers of published results learn about one device: the central figure (PROTOCOLS 11)."""

from protocols.privacy.central.figure import CentralLoss, central
