"""HTTP/1.1 on httptools and uvloop: small, bounded in every direction, and without a word about who asked."""

from gateway.http.connection import Limits
from gateway.http.listening import Listener, most_connections, tls_context
from gateway.http.messages import Answer, Application, Request, Response, Write
