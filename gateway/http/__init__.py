"""HTTP/1.1 on httptools and uvloop: small, bounded in every direction, and without a word about who asked."""

from gateway.http.listening import Limits, Listener, most_connections, tls_context
from gateway.http.messages import Answer, Application, Request, Response, Write, refusal

__all__ = [
    "Answer",
    "Application",
    "Limits",
    "Listener",
    "Request",
    "Response",
    "Write",
    "most_connections",
    "refusal",
    "tls_context",
]
