"""Whether Redis is configured to keep what is written. A lost memo can be derived again; a lost ledger cannot."""

from __future__ import annotations

from dataclasses import dataclass

from memo_store.connection.link import Link
from protocols.errors import StoreError, StoreUnavailable


@dataclass(frozen=True)
class Durability:
    """How the servers persist data: the weakest settings among them."""

    append_only: bool
    fsync: str | None  # always, everysec or no; None if the servers do not show it
    eviction: str | None  # the policy that evicts keys when memory is full; None: no keys are evicted

    def warnings(self) -> list[str]:
        """What data could be lost, and what to do about it.

        >>> Durability(append_only=True, fsync="always", eviction=None).warnings()
        []
        """
        found = []
        if not self.append_only:
            found.append("append-only is off: a restart loses what devices have memoised (set appendonly yes)")
        elif self.fsync == "no":
            found.append("the append-only file is never synced: a crash loses recent writes (set appendfsync always)")
        elif self.fsync == "everysec":
            found.append(
                "the append-only file is synced once a second: a crash loses a second (set appendfsync always)"
            )
        if self.eviction is not None:
            found.append(f"when memory is full, {self.eviction} may evict ledgers (set maxmemory-policy noeviction)")
        return found


def durability(link: Link) -> Durability:
    """The settings of all servers."""
    persistence, memory = link.ask_each("INFO", "persistence"), link.ask_each("INFO", "memory")
    limited = {info["maxmemory_policy"] for info in memory if info["maxmemory"]}
    return Durability(
        append_only=all(info["aof_enabled"] for info in persistence),
        fsync=_fsync(link),
        eviction=", ".join(sorted(limited - {"noeviction"})) or None,
    )


def warn_unless_durable(link: Link) -> Durability:
    """Log a warning for each way in which data could be lost."""
    found = durability(link)
    if warnings := found.warnings():
        import structlog  # takes time, and is seldom needed

        log = structlog.get_logger("memo_store")
        for warning in warnings:
            log.warning(warning, redis=link.where)
    return found


def _fsync(link: Link) -> str | None:
    """The weakest policy, or None if a server does not allow the question (hosted ones often do not)."""
    try:
        policies = {answer["appendfsync"] for answer in link.ask_each("CONFIG GET", "appendfsync")}
    except StoreUnavailable:
        raise
    except StoreError:
        return None
    return next(policy for policy in ("no", "everysec", "always") if policy in policies)
