"""What the gateway decides, without a server or a clock: who may send what, what is good, and how it is written."""

from gateway.door.canonical import Forms
from gateway.door.credentials import Credential, Role, credential_line, device_token, digest_of, read_credentials
from gateway.door.gathering import Cut, cut_rows, warm_up
from gateway.door.judging import Door, Times, closing_time
from gateway.door.rates import Rate, RateLimit

__all__ = [
    "Credential",
    "Cut",
    "Door",
    "Forms",
    "Rate",
    "RateLimit",
    "Role",
    "Times",
    "closing_time",
    "credential_line",
    "cut_rows",
    "device_token",
    "digest_of",
    "read_credentials",
    "warm_up",
]
