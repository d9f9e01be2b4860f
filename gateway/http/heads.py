"""What a head says about the request that it begins: read as RFC 9112 says, and refused where readers could differ."""

import re
from ipaddress import ip_address
from typing import Any

_ABSOLUTE = re.compile(rb"https?://([^/?#@]+)([/?].*)?", re.IGNORECASE | re.DOTALL)


def is_sound(version: str, headers: dict[bytes, bytes]) -> bool:
    """Whether everybody between here and the client finds the same end of the request.

    >>> is_sound("1.1", {b"host": b"h", b"transfer-encoding": b"Chunked"}), is_sound("1.1", {}), is_sound("1.0", {})
    (True, False, True)
    """
    coding = headers.get(b"transfer-encoding")
    if version == "1.1":
        return b"host" in headers and (coding is None or coding.strip().lower() == b"chunked")
    return version == "1.0" and coding is None


def origin_form(url: bytes, headers: dict[bytes, bytes]) -> bytes | None:
    """The path and query that are asked for; None if it is no target of ours. A host in the target replaces `Host`.

    >>> headers = {b"host": b"elsewhere"}
    >>> origin_form(b"http://here:80?q", headers), headers, origin_form(b"here:80", headers)
    (b'/?q', {b'host': b'here:80'}, None)
    """
    if url.startswith(b"/") or url == b"*":
        return url
    absolute = _ABSOLUTE.fullmatch(url)
    if absolute is None:
        return None
    headers[b"host"] = absolute[1]
    rest = absolute[2] or b"/"
    return rest if rest.startswith(b"/") else b"/" + rest


def name_in(host: bytes) -> str:
    """The name in a `Host` header, without the port.

    >>> name_in(b"127.0.0.1:8050"), name_in(b"[::1]:8050"), name_in(b"LocalHost")
    ('127.0.0.1', '::1', 'localhost')
    """
    text = host.decode("latin-1").strip().lower()
    return text[1:].partition("]")[0] if text.startswith("[") else text.partition(":")[0]


def address_of(transport: Any) -> str:
    """Whose connection it is: the address, or of IPv6 the network, which one client has to itself."""
    address = ip_address(str(transport.get_extra_info("peername")[0]).partition("%")[0])
    return address.packed[:8].hex() if address.version == 6 else str(address)
