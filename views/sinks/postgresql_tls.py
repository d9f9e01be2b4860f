"""Whether the server of a PostgreSQL sink must show a certificate: it must, unless it is on this machine.

libpq's own default, `prefer`, takes any certificate, and none: whoever is between the two reads and changes all
results. So an address that says nothing is connected to with `verify-full`. What an operator says always holds, in the
address or in libpq's variables.
"""

import os
from collections.abc import Mapping
from typing import Any

from protocols.errors import SettingsError
from servers.ports import is_loopback

VERIFIED = "verify-full"
MODE = "sslmode"
ABOUT_TLS = ("SSL", "certificate")
"""Words of libpq, one of which is in every error about TLS."""


def sslmode_to_add(address: str, driver: Any) -> str | None:
    """The `sslmode` to connect with, where an operator says none; None where one is said, or none is needed."""
    said = _said(address, driver)
    if said.get(MODE) is not None or _is_on_this_machine(said):
        return None
    return VERIFIED


def changed_since_02(address: str, error: Exception) -> str | None:
    """What to do about a connection that failed because of its certificate; None if it failed otherwise."""
    if not any(word in str(error) for word in ABOUT_TLS):
        return None
    joint = "&" if "?" in address else "?"
    return (
        "since 0.3 the server's certificate is verified unless the address says otherwise: write "
        f"{address}{joint}sslmode=verify-full&sslrootcert=CA.pem with its authority, "
        f"or {address}{joint}sslmode=prefer to connect as 0.2 did, unverified"
    )


def _said(address: str, driver: Any) -> Mapping[str, str | None]:
    """What the address says, and otherwise libpq's variables and the service that PGSERVICE names."""
    try:
        in_address = driver.conninfo.conninfo_to_dict(address)
    except driver.Error as error:
        reason = " ".join(str(error).split())
        raise SettingsError(
            f"the address of a PostgreSQL sink cannot be read: {reason}",
            "write it as postgresql://USER@HOST/DATABASE",
        ) from None
    around: dict[str, str | None] = {}
    for option in driver.pq.Conninfo.get_defaults():
        is_default = option.val == option.compiled
        if option.val is not None and not is_default:
            around[option.keyword.decode()] = option.val.decode()
    if "PGSSLMODE" in os.environ:  # also if it is libpq's own default
        around[MODE] = os.environ["PGSSLMODE"]
    return {**around, **in_address}


def _is_on_this_machine(said: Mapping[str, str | None]) -> bool:
    """Whether every host is a socket or a loopback address. libpq connects to `hostaddr`, if there is one."""
    if "service" in said and "host" not in said:  # a file says where it is
        return False
    hosts = said.get("hostaddr") or said.get("host") or ""
    return all(_is_socket(host) or is_loopback(host) for host in hosts.split(","))


def _is_socket(host: str) -> bool:
    """Whether a host is a directory of sockets, or an abstract one, or libpq's own directory.

    >>> _is_socket("/run/postgresql"), _is_socket("@abstract"), _is_socket(""), _is_socket("db.example")
    (True, True, True, False)
    """
    return not host or host.startswith(("/", "@"))
