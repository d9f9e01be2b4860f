"""Any library as a function of Python: a value in, the bytes of one report out. Does it keep its epsilon?

The audit is told neither which two values to compare nor where in the bytes to look: both are learnt from half of the
calls. The other half proves a loss, as coins do (docs/audit.md, section 5).
"""

import sys
from collections.abc import Callable
from importlib import import_module
from itertools import combinations

import numpy as np

from hearsay.cli import WithoutPandas
from hearsay.terminal.console import Step
from lab.attacks.beside import Classifier, bits_of_bytes, bits_of_numbers, padded
from lab.attacks.coins import coin_audit, loss_figure
from lab.attacks.report import AuditReport, defects
from protocols.arrays import Floats, Mask
from protocols.errors import SettingsError

FEWEST = 50  # calls for each value
Make = Callable[[int], bytes]


def function_named(name: str) -> Make:
    """`module:function`; modules of the current directory are found, too, as by `python -m`."""
    module, _, function = name.partition(":")
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, WithoutPandas)]  # it may need it
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        made: Make = getattr(import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise SettingsError(f"--function {name}: {error}", "write it as module:function") from None
    return made


def audit_function(
    name: str, make: Make, values: int, promise: float, calls: int, alpha: float, seed: int, step: Step
) -> AuditReport:
    """What the reports of a function prove about its loss between two of the values 0 .. values-1."""
    if calls < FEWEST * values:
        raise SettingsError(f"--devices {calls}: too few calls for {values} values", f"call it {FEWEST * values} times")
    given, reports = np.random.default_rng([seed, calls]).integers(values, size=calls), []
    for number, value in enumerate(given.tolist()):
        try:
            report = make(value)
        except Exception as error:  # of somebody else's code
            message = f"--function {name}: value {value}: {type(error).__name__}: {error}"
            raise SettingsError(message, f"it is given the values 0 to {values - 1}") from error
        if not isinstance(report, bytes):
            raise SettingsError(f"--function {name} returned {type(report).__name__}", "return bytes")
        reports.append(report)
        step(number, calls, name)
    lengths = bits_of_numbers(np.array([len(report) for report in reports]))[0]
    bits, quarter = np.concatenate([bits_of_bytes(padded(reports))[0], lengths], axis=1), np.arange(calls) % 4

    def judged(pair: tuple[int, int], learns: Mask, judges: Mask) -> tuple[Floats, Mask]:
        """The scores of reports of two values, and whether each is of the first one."""
        asked, coins = np.isin(given, pair), given == pair[0]
        classifier = Classifier(bits[asked & learns], coins[asked & learns])
        return classifier.scores(bits[asked & judges]), coins[asked & judges]

    def proven(pair: tuple[int, int]) -> tuple[float, int]:
        return coin_audit(*judged(pair, quarter == 0, quarter == 1), alpha)

    pair = max(combinations(range(values), 2), key=proven)
    target, scores = f"values {pair[0]} and {pair[1]}", judged(pair, quarter < 2, quarter >= 2)
    figure = loss_figure(target, "all bytes of a report", *scores, promise, alpha, histogram=None)
    return AuditReport(
        survey=name, fingerprint="", solution="a function", mechanisms={}, crowd=calls, attacker="best", alpha=alpha,
        seed=seed, source="even values", path=name, devices=calls, periods=1, figures=(figure,),
        findings=tuple(defects([figure], alpha)),
    )  # fmt: skip
