"""A device that answers hearsay surveys under local differential privacy, and trusts nobody."""

from __future__ import annotations

from hearsay_device.device import Device, Sent
from hearsay_device.errors import DeviceError, HearsayError
from hearsay_device.limits import Limits
from hearsay_device.recorder import Recorder
from hearsay_device.state import Report

__all__ = ["Device", "DeviceError", "HearsayError", "Limits", "Recorder", "Report", "Sent"]
