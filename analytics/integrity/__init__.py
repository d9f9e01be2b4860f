"""Whether counts can have come from honest devices: checks, their p-values, and a verdict for each period."""

from analytics.integrity.checks import ALPHA, Answers
from analytics.integrity.flow import Closed, Flow, flow_of
from analytics.integrity.robust import Robust, robust
from analytics.integrity.verdict import MEANINGS, AttributeIntegrity, CheckName, Integrity, integrity_of
