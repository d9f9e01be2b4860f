"""Limits of a survey's figures, as `--fail-above guess=0.5,link=+0.01,epsilon=+0` gives them, and what exceeds them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lab.audit.report import ATTACKS, Attack, Figure
from protocols.errors import SettingsError


@dataclass(frozen=True)
class Limit:
    """The largest figure that is accepted, or how far it may be above luck (of epsilon: above what is promised)."""

    value: float
    relative: bool


def parse_limits(text: str) -> dict[Attack, Limit]:
    """Limits by attack.

    >>> parse_limits("guess=0.5, epsilon=+0")
    {'guess': Limit(value=0.5, relative=False), 'epsilon': Limit(value=0.0, relative=True)}
    """
    limits: dict[Attack, Limit] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, number = part.partition("=")
        attack = next((attack for attack in ATTACKS if attack == name.strip()), None)
        try:
            value = float(number)
        except ValueError:
            value = -1.0
        if attack is None or value < 0:
            raise SettingsError(
                f"{part!r} is not a limit", f"write guess=0.5 or link=+0.01; attacks are {', '.join(ATTACKS)}"
            )
        limits[attack] = Limit(value, number.strip().startswith("+"))
    return limits


def breaches(figures: Iterable[Figure], limits: Mapping[Attack, Limit]) -> tuple[str, ...]:
    """A sentence for each figure that exceeds its limit."""
    found = []
    for figure in figures:
        limit = limits.get(figure.attack)
        if limit is None or not figure.limited or figure.unit == "bits":
            continue
        if figure.attack == "epsilon" and limit.relative:
            value, allowed = figure.measured, None if figure.best is None else figure.best + limit.value
            above = f"its promise of {figure.best:.4g}" if figure.best is not None else ""
        else:
            base = (figure.luck or 0.0) if limit.relative else 0.0
            value, allowed = figure.value, base + limit.value
            above = f"luck, {base:.4g}" if limit.relative else ""
        if value is not None and allowed is not None and value > allowed:
            stated = f"{limit.value:g} above {above}" if limit.relative else f"{limit.value:g}"
            found.append(f"{figure.name} reaches {value:.4g}, and the limit is {stated}")
    return tuple(found)
