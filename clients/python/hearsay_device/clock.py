"""The days that a device has lived, by which its limits are renewed: a clock alone can be set forward."""

from __future__ import annotations

import os
import time
from math import floor
from pathlib import Path
from typing import Any, Callable

from hearsay_device.terms import DAY

Uptime = Callable[[], tuple[str, float]]
"""Which start of the machine this is, and for how many seconds it has run."""

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
PROCESS = os.urandom(8).hex()
PROCESS_BEGAN = time.monotonic()


def machine_uptime() -> tuple[str, float]:
    """The start of the machine; where the system does not name it, that of this process."""
    try:
        return BOOT_ID.read_text().strip(), time.clock_gettime(time.CLOCK_BOOTTIME)
    except (OSError, AttributeError):
        return PROCESS, time.monotonic() - PROCESS_BEGAN


def born(now: float, uptime: tuple[str, float]) -> dict[str, Any]:
    """What a new device has lived. Its days are numbered as UTC days are, from its first one on."""
    start, running = uptime
    return {"seconds": now, "clock": now, "start": start, "uptime": running}


def live(lived: dict[str, Any], now: float, uptime: tuple[str, float]) -> None:
    """Add what the clock moved forward since the last call, but no more than the machine ran.

    A machine that was started again may have been off for long. It counts for at most a day more
    than it has run since. Whoever moves the clock by 40 years renews nothing: without a start of
    the machine for each day, the days of a year take a year.
    """
    start, running = uptime
    forward = max(0.0, now - lived["clock"])
    ran = running + DAY
    if start == lived["start"]:
        ran = max(0.0, running - lived["uptime"])
    lived["seconds"] += min(forward, ran)
    lived.update(clock=now, start=start, uptime=running)


def day_of(lived: dict[str, Any]) -> int:
    seconds: float = lived["seconds"]
    return floor(seconds / DAY)
