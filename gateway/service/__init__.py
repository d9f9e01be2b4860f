"""The gateway as a service: its routes, and the one thread that writes what they take."""

from gateway.service.holding import Holder
from gateway.service.metrics import Metrics
from gateway.service.routes import Gateway, Page, Watching, health_pages, metrics_page
from gateway.service.senders import Senders
from gateway.service.token_keys import ChainedKeys, StateFile, TokenKeys, read_state
from gateway.service.writing import Log, Writer
