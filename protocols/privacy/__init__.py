"""What reports reveal: losses and the histories they hold between, amplification, and the risk of single reports."""

from protocols.privacy.central import CentralLoss
from protocols.privacy.central import central as central_loss
from protocols.privacy.crowd import Evidence, evidence, hidden_bits, memo_trackability, trait_values
from protocols.privacy.geometric import geometric_variance, noise_error, noise_quantile
from protocols.privacy.guarantees import NEAR, Guarantees, Loss, PlaceLoss, in_words
from protocols.privacy.linked import loss_of_values
from protocols.privacy.linking import first_guess, memos_of, of_the_value, pairs_of
from protocols.privacy.presence import ANSWERS, REPORTS, SUPPORTS, PresenceNoise, SeriesName
from protocols.privacy.risk import attribute_guess, blind_guess, mean_of_largest, width_laws
