"""HTTP/1.1 on httptools and uvloop: small, bounded in every direction, and without a word about who asked."""

from gateway.http.listening import Limits, Listener, tls_context
from gateway.http.messages import Answer, Application, Request, Response, refusal

__all__ = ["Answer", "Application", "Limits", "Listener", "Request", "Response", "refusal", "tls_context"]
