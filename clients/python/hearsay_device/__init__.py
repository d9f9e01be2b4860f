"""A device that answers hearsay surveys under local differential privacy, and trusts nobody.

Device         answers surveys for one person, within limits; state in one SQLite file
Limits         the most that it reveals
Recorder       many events of a period become one value
Report, Sent   what a report says, and what became of it
DeviceError    what it refuses, with a code
"""

from __future__ import annotations

from hearsay_device.changes import Report
from hearsay_device.device import Device, Sent
from hearsay_device.errors import DeviceError, HearsayError
from hearsay_device.limits import Limits
from hearsay_device.recorder import Recorder

__all__ = ["Device", "DeviceError", "HearsayError", "Limits", "Recorder", "Report", "Sent"]
