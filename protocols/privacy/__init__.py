"""What reports reveal: exact losses, amplification, and the risk of single reports."""

from protocols.privacy.guarantees import Guarantees, Loss
from protocols.privacy.linked import loss_of_values

__all__ = ["Guarantees", "Loss", "loss_of_values"]
