"""`hearsay doctor`: check this machine and its servers. `hearsay version`."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version as installed
from typing import TYPE_CHECKING

import typer
from rich.markup import escape
from rich.table import Column, Table

from hearsay.terminal import console
from protocols.errors import HearsayError
from servers.distribution import DISTRIBUTION, pip_install

if TYPE_CHECKING:
    from servers.settings import Settings

MAX_CLOCK_SKEW_SECONDS = 5.0
COLOURS = re.compile(r"\x1b\[[0-9;]*m")  # Maven sends them to files too


@dataclass(frozen=True)
class Finding:
    """The result of one check. `ok` is None for what an embedded run does not need."""

    what: str
    ok: bool | None
    found: str
    advice: str = ""


def version(as_json: console.AsJson = False) -> None:
    """Print the version.

    Example: hearsay version
    """
    if as_json:
        console.print_json({"hearsay": installed(DISTRIBUTION)})
    else:
        console.out.print(f"hearsay {installed(DISTRIBUTION)}")


def doctor(as_json: console.AsJson = False) -> None:
    """Check this machine and the servers of its settings, and show what to do about each problem.

    Checks Python, packages of others that have names of ours, Java, Maven, Redis, the broker, its topics, its
    surveys and the clock, and shows the settings. Secrets are never shown.

    Example: hearsay doctor
    """
    from servers.settings import load

    settings = load()
    findings = list(_check(settings))
    shown = dict(named_settings(settings))
    defaults = {name for name, value in named_settings(type(settings).model_construct()) if shown[name] == value}
    if as_json:
        facts = {"findings": [asdict(finding) for finding in findings], "settings": shown, "defaults": sorted(defaults)}
        console.print_json(facts)
    else:
        _show(findings, shown, defaults)
    if any(finding.ok is False for finding in findings):
        raise typer.Exit(1)


def _check(settings: Settings) -> Iterator[Finding]:
    from hearsay.extras import strangers
    from servers.distribution import former_name

    python = ".".join(map(str, sys.version_info[:3]))
    yield Finding("Python", sys.version_info >= (3, 11), python, "install Python 3.11 or later")
    taken = "; ".join(f"{name} is that of {origin}" for name, origin in strangers().items())
    yield Finding("packages", not taken, taken or "all are ours", "use an environment of its own")
    former = former_name()
    if former is not None:
        yield Finding("installation", False, former.what, former.cure)
    yield _program("java", ["-version"], "needed for a local Kafka broker only: install OpenJDK 17 or later")
    yield _program("mvn", ["--batch-mode", "-v"], "needed once, to fetch the local broker: install Maven")
    yield _asked("Redis server", _redis_server)
    yield _asked("Redis", lambda: _redis(settings))
    broker = _asked("broker", lambda: _broker(settings))
    yield broker
    if broker.ok:
        yield _asked("surveys", lambda: _surveys(settings))
        yield _asked("broker's clock", lambda: _clock_of_the_broker(settings))
    now = datetime.now(UTC)
    yield Finding("clock", now.year >= 2026, now.isoformat(timespec="seconds"), "set the machine's clock (NTP)")


def _asked(what: str, ask: Callable[[], Finding]) -> Finding:
    try:
        return ask()
    except HearsayError as error:
        return Finding(what, False, error.message, error.hint)
    except ModuleNotFoundError as error:
        return Finding(what, None, f"{error.name} is not installed", pip_install("all"))


def _program(name: str, arguments: list[str], advice: str) -> Finding:
    path = shutil.which(name)
    if path is None:
        return Finding(name, None, "not on PATH", advice)
    answer = subprocess.run([path, *arguments], capture_output=True, text=True, timeout=30, check=False)
    first = COLOURS.sub("", answer.stdout or answer.stderr).strip().splitlines()
    return Finding(name, True, first[0] if first else path)


def _redis_server() -> Finding:
    from servers.redis_server import embedded_program, release_of

    return Finding("Redis server", True, str(release_of(embedded_program())))


def _redis(settings: Settings) -> Finding:
    if settings.redis.url is None:
        return Finding("Redis", None, "no HEARSAY_REDIS_URL", "an embedded run starts its own")
    import redis

    try:
        client = redis.Redis.from_url(settings.redis.url, **settings.redis.client_options())
        seconds, micros = client.time()
        skew = abs(seconds + micros / 1e6 - time.time())
        durable = client.config_get("appendonly").get("appendonly") == "yes"
    except redis.RedisError as error:
        return Finding("Redis", False, f"{settings.redis.url}: {error}", "start it, or correct HEARSAY_REDIS_*")
    if skew > MAX_CLOCK_SKEW_SECONDS:
        return Finding("Redis", False, f"its clock differs by {skew:.0f} s", "synchronise both clocks (NTP)")
    if not durable:
        return Finding("Redis", False, "append-only is off", "set appendonly yes: a memo store must survive a crash")
    return Finding("Redis", True, f"{settings.redis.url}, append-only on")


def _broker(settings: Settings) -> Finding:
    if settings.kafka == type(settings).model_fields["kafka"].default:
        return Finding(
            "broker", None, "no HEARSAY_KAFKA_BOOTSTRAP", "an embedded run needs none; hearsay stack up starts one"
        )
    from stream_app.faust_app import check_cluster
    from stream_app.kafka import visible

    problems = check_cluster(settings.kafka, visible(settings.kafka))
    if problems:
        return Finding("broker", False, "; ".join(map(str, problems)), "run hearsay topics check")
    return Finding("broker", True, f"{settings.kafka.bootstrap}, topics configured as required, logs as counted")


def _clock_of_the_broker(settings: Settings) -> Finding:
    from stream_app.kafka import existing, read_clocks

    name = "broker's clock"
    clocks = read_clocks(settings.kafka, existing(settings.kafka))
    if clocks is None:
        return Finding(name, None, "it does not say its time", "compare both clocks by hand")
    if abs(clocks.difference) > MAX_CLOCK_SKEW_SECONDS:
        return Finding(
            name, False, str(clocks), "synchronise both clocks (NTP): workers refuse to start, or close early"
        )
    return Finding(name, True, "agrees with that of this machine")


def _surveys(settings: Settings) -> Finding:
    from stream_app.faust_app import quarantined_surveys
    from stream_app.kafka import existing

    with console.progress("reading the state of workers"):
        quarantined = quarantined_surveys(settings.kafka, existing(settings.kafka))
    if quarantined:
        found = "; ".join(sorted({f"{one.survey} is quarantined: {one.quarantine.why}" for one in quarantined}))
        return Finding("surveys", False, found, "remove the cause, stop the workers, run hearsay recover --survey ID")
    return Finding("surveys", True, "none is quarantined")


def named_settings(settings: Settings) -> Iterator[tuple[str, str | None]]:
    """Every setting by the name of its variable; secrets as stars."""
    for section, values in settings.model_dump(mode="json").items():
        for name, value in values.items() if isinstance(values, dict) else [("", values)]:
            key = "_".join(part for part in ("HEARSAY", section, name) if part).upper()
            yield key, None if value is None else str(value)


def _show(findings: list[Finding], settings: dict[str, str | None], defaults: set[str]) -> None:
    marks = {True: "[green]✓[/]", False: "[red]✗[/]", None: "[dim]·[/]"}
    folded = (Column(heading, overflow="fold") for heading in ("found", "what to do"))
    table = Table("", "check", *folded, box=None, pad_edge=False)
    for finding in findings:
        advice = "" if finding.ok else finding.advice
        table.add_row(marks[finding.ok], finding.what, escape(finding.found), escape(advice))
    console.out.print(table)
    console.out.print("\nsettings", style="bold")
    for name, value in settings.items():
        if name not in defaults:
            console.out.print(f"  {name}={escape(str(value))}", soft_wrap=True)
        else:
            used = "" if value is None else f"; by default {escape(value)}"
            console.out.print(f"  [dim]{name} is not set{used}[/]", soft_wrap=True)
