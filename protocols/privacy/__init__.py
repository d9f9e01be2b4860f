"""What reports reveal: losses and the histories they hold between, amplification, and the risk of single reports."""

from protocols.privacy.guarantees import Guarantees
from protocols.privacy.linked import loss_of_values
from protocols.privacy.loss import Loss, Relation
from protocols.privacy.presence import PresenceNoise, geometric_variance

__all__ = ["Guarantees", "Loss", "PresenceNoise", "Relation", "geometric_variance", "loss_of_values"]
