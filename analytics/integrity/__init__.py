"""Whether counts can have come from honest devices: checks, their p-values, and a verdict for each period."""

from analytics.integrity.checks import ALPHA, Answers, robust
from analytics.integrity.verdict import MEANINGS, CheckName, Closed, Flow, Integrity, flow_of, integrity_of
