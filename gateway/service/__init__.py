"""The gateway as a service: its routes, and the one thread that writes what they take."""

from gateway.service.holding import Holder
from gateway.service.metrics import Metrics
from gateway.service.routes import Gateway, Page, Watching, health_pages, metrics_page
from gateway.service.senders import Senders
from gateway.service.sharing import KeysForPeers, PeerTls, Puller, peer_address, pull
from gateway.service.token_keys import SharedKeys, StateFile, TokenKeys, read_state
from gateway.service.writing import Log, Writer
