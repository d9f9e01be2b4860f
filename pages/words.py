"""What pages and reports call those who answer."""

from collections.abc import Iterable

PLACES = {"area", "transition"}  # roles of attributes whose values are places
DEVICES = {"one": "device", "many": "devices", "people": "devices", "kicker": "Survey results"}
VISITORS = {"one": "visitor", "many": "visitors", "people": "people", "kicker": "Mobility report"}


def words(roles: Iterable[str]) -> dict[str, str]:
    """What to call those who answer attributes of these roles: visitors if there are places, otherwise devices.

    >>> words(["plain", "area"])["many"], words(["plain"])["many"]
    ('visitors', 'devices')
    """
    return DEVICES if PLACES.isdisjoint(roles) else VISITORS
