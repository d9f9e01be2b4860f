"""What published numbers tell about who reported (docs/device-protocol.md, "Presence")."""

from __future__ import annotations

from math import ceil, exp
from typing import Any, NamedTuple

from hearsay_device.errors import keys, need, number, whole

SERIES = ("period", "day", "week", "month", "year")
"""What numbers are published of, in the order in which terms name them."""
LISTS = ("numbers", "new", "tables")
MOST_ROLLING = 2
MOST_DAYS = 366
MOST_HIDDEN = 10**9

NOISE = (
    "Every published number has noise, which the collector adds. An attacker who knows everything "
    "about all other devices guesses whether this device reported in one period, and is right in at "
    "most {percent} of cases (random guessing: 50 %). Over several periods this adds up."
)
CAPPED = (
    "Under memo_cap, what this device answers later may depend on it, too, and is protected by the noise "
    "of the answers alone."
)
EXACT = (
    "Published numbers of visitors are exact. Anyone who knows which devices usually report can see "
    "how many came and how many stayed away."
)
HIDDEN = "Numbers below {publish_from} are hidden because they say little; hiding them protects nobody."
EARLIER = (
    "The terms are of version {version}: count on no protection of presence. Anyone who knows which "
    "devices usually report may see in published numbers how many came and how many stayed away."
)


class Presence(NamedTuple):
    """Version 3 of the terms has exactly one of both: noise on all that is published, or exact numbers."""

    version: int
    epsilon: float | None = None
    publish_from: int | None = None
    capped: bool = False

    def explain(self) -> dict[str, Any]:
        """For the person whose device it is.

        `chance`: the largest share of right guesses whether this device reported in one period, of
        somebody who knows everything about all other devices, from all that is published. With a
        `memo_cap`, later answers are not counted.
        """
        bound = 1.0 if self.epsilon is None else chance(self.epsilon)
        return {"chance": bound, "text": self._text(bound)}

    def _text(self, bound: float) -> str:
        if self.epsilon is not None:
            noise = NOISE.format(percent=_percent(bound))
            return f"{noise} {CAPPED}" if self.capped else noise
        if self.publish_from is None:
            return EARLIER.format(version=self.version)
        if self.publish_from == 0:
            return EXACT
        return f"{EXACT} {HIDDEN.format(publish_from=self.publish_from)}"


def presence_of(declared: dict[str, Any], version: int) -> Presence:
    """What terms declare. Versions 1 and 2 promise nothing here that a device could check."""
    if version < 3:
        return Presence(version)
    is_exact = "publish_from" in declared
    need(is_exact != ("presence_epsilon" in declared), "one of publish_from and presence_epsilon")
    if is_exact:
        need(not declared.keys() & {*LISTS, "rolling"}, "lists of what is published need presence_epsilon")
        publish_from = whole(declared["publish_from"], 0, MOST_HIDDEN, "publish_from")
        return Presence(version, publish_from=publish_from)
    epsilon = declared["presence_epsilon"]
    need(number(epsilon) and epsilon > 0, "presence_epsilon")
    for name in LISTS:
        if name in declared:
            _require_series(declared[name], name)
    need(declared.get("numbers") != [], "numbers")
    if "rolling" in declared:
        _require_windows(declared["rolling"])
    return Presence(version, epsilon=float(epsilon), capped="memo_cap" in declared)


def _require_series(given: Any, name: str) -> None:
    need(isinstance(given, list), name)
    in_order = [each for each in SERIES if each in given]
    need(given == in_order, name)


def _require_windows(given: Any) -> None:
    need(isinstance(given, list) and len(given) <= MOST_ROLLING, "rolling")
    for window in given:
        keys(window, "days every", "rolling")
        whole(window["days"], 1, MOST_DAYS, "rolling")
        whole(window["every"], 1, MOST_DAYS, "rolling")


def chance(spent: float) -> float:
    """How often the right one of two equally likely answers is guessed."""
    return 1 / (1 + exp(-spent))


def _percent(share: float) -> str:
    """Rounded up: a bound stays a bound."""
    return f"{ceil(1000 * share) / 10:.1f} %"
