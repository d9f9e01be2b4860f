"""What reports reveal: exact losses, amplification, and the risk of single reports."""

from protocols.privacy.guarantees import Guarantees
from protocols.privacy.linked import loss_of_values
from protocols.privacy.loss import Loss

__all__ = ["Guarantees", "Loss", "loss_of_values"]
