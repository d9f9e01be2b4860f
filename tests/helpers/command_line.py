"""The command line: holding words against it without doing what they say, and calling it as an operator does."""

import os
import subprocess
from pathlib import Path
from typing import Any

import click
import typer

from hearsay.cli import app
from servers.settings import KafkaSettings
from stream_app.kafka import Topics
from tests.helpers.eventually import eventually
from tests.helpers.nursery import ROOT, run

WITHIN_SECONDS = 600


def resolve(arguments: list[str]) -> tuple[click.Command, list[str]]:
    """The command that is called, and its own arguments."""
    command: Any = typer.main.get_command(app)
    rest = [argument for argument in arguments if argument != "--debug"]
    while hasattr(command, "get_command") and rest and not rest[0].startswith("-"):
        _, command, rest = command.resolve_command(click.Context(command), rest)
    return command, rest


def recover(kafka: KafkaSettings, topics: Topics, *options: str) -> subprocess.CompletedProcess[str]:
    """`hearsay recover` after the workers have left: one that was slow to leave counts as running for some seconds."""
    tried: list[subprocess.CompletedProcess[str]] = []

    def is_let() -> bool:
        tried.append(hearsay(kafka, topics, "recover", *options))
        return "stop all workers first" not in tried[-1].stderr

    eventually(is_let)
    return tried[-1]


def hearsay(kafka: KafkaSettings, topics: Topics, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command as an operator calls it, in a wide terminal."""
    own = {"HEARSAY_KAFKA_BOOTSTRAP": kafka.bootstrap, "HEARSAY_KAFKA_PREFIX": topics.prefix, "COLUMNS": "200"}
    return run(*arguments, **own)


def done(*words: str | Path, directory: Path = ROOT, **environment: str) -> str:
    """What a program that ends well prints; otherwise all that it said."""
    ran = subprocess.run(
        list(map(str, words)),
        cwd=directory,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=WITHIN_SECONDS,
        check=False,
    )
    assert ran.returncode == 0, f"{words}, exit code {ran.returncode}:\n{ran.stdout}\n{ran.stderr}"
    return ran.stdout
