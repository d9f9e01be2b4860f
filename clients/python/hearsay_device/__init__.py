"""A device that answers hearsay surveys under local differential privacy, and trusts nobody."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

__all__ = ["Device", "DeviceError", "HearsayError", "Limits", "Recorder", "Report", "Sent"]

if TYPE_CHECKING:
    from hearsay_device.device import Device, Sent
    from hearsay_device.errors import DeviceError, HearsayError
    from hearsay_device.limits import Limits
    from hearsay_device.recorder import Recorder
    from hearsay_device.state import Report
else:
    # Each is imported when it is first used: hearsay needs little of this, and every command of it would wait for all.
    _HOMES = {
        "Device": "hearsay_device.device",
        "DeviceError": "hearsay_device.errors",
        "HearsayError": "hearsay_device.errors",
        "Limits": "hearsay_device.limits",
        "Recorder": "hearsay_device.recorder",
        "Report": "hearsay_device.state",
        "Sent": "hearsay_device.device",
    }

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(_HOMES[name]), name)

    def __dir__() -> list[str]:
        return __all__
