"""The result of evaluating a method at a budget."""

from dataclasses import dataclass
from math import isfinite, sqrt
from typing import Any

from lab.evaluation.methods import Method
from protocols.arrays import Floats
from protocols.privacy import Guarantees


@dataclass(frozen=True)
class Mean:
    """A mean over runs and its standard error (NaN for a single run)."""

    value: float
    error: float

    @classmethod
    def of(cls, figures: Floats) -> "Mean":
        """Of figures `[run]`."""
        runs = len(figures)
        return cls(float(figures.mean()), float(figures.std(ddof=1) / sqrt(runs)) if runs > 1 else float("nan"))


def plain(figures: Any) -> Any:
    """Figures as plain data, for JSON; None where one is not finite."""
    if isinstance(figures, Mean | PlaceErrors):
        figures = vars(figures)
    if isinstance(figures, dict):
        return {name: plain(figure) for name, figure in figures.items()}
    return None if isinstance(figures, float) and not isfinite(figures) else figures


@dataclass(frozen=True)
class PlaceErrors:
    """Of estimated places: metres that people must be moved to be where they are, and the error of areas' shares."""

    metres: Mean
    areas: Mean | None  # the root mean square over areas and periods; None without areas


@dataclass(frozen=True)
class Score:
    """The errors of one method at one budget."""

    method: Method
    eps: float
    eps_1: float | None
    mse: dict[str, Mean]  # MSE_avg, by correction
    expected: float  # the MSE of raw in theory (PROTOCOLS 1); NaN for places, whose estimate is no sum over reports
    guarantees: Guarantees  # computed from the channels, whatever budget was declared
    mechanisms: dict[str, str]  # by attribute: those that allomfree and adp chose
    by_attribute: dict[str, dict[str, float]]  # mean squared errors, by attribute and correction
    places: dict[str, PlaceErrors]  # of attributes of places, what their published estimates are off by

    @property
    def headline(self) -> str:
        """The correction that goes with the method, of those that were measured.

        That is clip for the papers' variants and Norm-Sub for ours; ibu for ordered mechanisms.
        """
        own = ["clip"] if self.method.terms == "published" else ["ibu"] * self.method.ordered + ["norm-sub"]
        return next((name for name in own if name in self.mse), next(iter(self.mse)))

    def rmse(self, correction: str) -> float:
        """The root of MSE_avg: the typical error of a share."""
        return sqrt(self.mse[correction].value)

    def record(self) -> dict[str, Any]:
        """All figures as plain data, for JSON; None where one is not finite."""
        return {
            "method": self.method.name,
            "terms": self.method.terms,
            "eps": self.eps,
            "eps_1": self.eps_1,
            "mse": plain(self.mse),
            "rmse": {name: self.rmse(name) for name in self.mse},
            "expected_mse": plain(self.expected),
            "per_report": self.guarantees.per_report.model_dump(),
            "for_ever": self.guarantees.for_ever.model_dump(),
            "mechanisms": self.mechanisms,
            "by_attribute": plain(self.by_attribute),
            "places": plain(self.places),
        }


@dataclass(frozen=True)
class Infeasible:
    """A method that is not defined for a budget or for these attributes."""

    method: Method
    eps: float
    reason: str

    def record(self) -> dict[str, Any]:
        named = {"method": self.method.name, "terms": self.method.terms, "eps": self.eps}
        return {**named, "infeasible": self.reason}


Outcome = Score | Infeasible
