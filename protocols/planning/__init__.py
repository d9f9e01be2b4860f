"""What a survey will cost, reveal and deliver, and what its author should know."""

from protocols.planning.cautions import FEWEST_CANDIDATES
from protocols.planning.central import CentralPlan, TargetPlan
from protocols.planning.chances import Chance, chance_of_readers, chances, factor_of, of_100
from protocols.planning.links import gap_bits
from protocols.planning.plan import DEVICES, AttributePlan, NoisePlan, Plan, plan
from protocols.planning.precision import DRIFTS, PrecisionPlan, SharesPlan, told_apart, widest_interval
from protocols.planning.presence import PresencePlan, error_of_usual_noise
