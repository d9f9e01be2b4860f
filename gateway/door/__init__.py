"""What the gateway decides, without a server or a clock: who may send what, what is good, and how it is written."""

from gateway.door.credentials import Credential, Rate, RateLimit, credential_line, read_credentials
from gateway.door.judging import Times, closing_time
from gateway.door.keys import HOURS_AHEAD, KeyState, Link, hour_of
