"""A real Redis on this machine, for the embedded run, the local stack and the tests: Valkey, or Redis itself."""

from servers.redis_server.installed import Program, Release, program_for, programs
from servers.redis_server.process import SOCKET_PATH_BYTES, RedisServer, local
