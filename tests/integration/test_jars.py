"""Kafka's program files are fetched once, whoever asks and however many ask at once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from protocols.errors import ServerError
from servers import kafka_jars as jars

ASK = "from servers.kafka_jars import kafka_jars; print(kafka_jars())"


@pytest.mark.long(part="kills")
def test_two_processes_that_ask_at_once_get_the_same_complete_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEARSAY_CACHE", str(tmp_path))
    asking = [subprocess.Popen([sys.executable, "-c", ASK], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    answers = [process.communicate(timeout=300)[0].strip() for process in asking]
    assert answers == [str(jars.jars_directory())] * 2
    assert any(jars.jars_directory().glob(f"kafka-clients-{jars.kafka_version()}.jar"))
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        jars.jars_directory().name,
        f"{jars.jars_directory().name}.lock",
    ]


@pytest.mark.long(part="kills")
def test_a_fetch_that_fails_leaves_nothing_behind_and_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "pom.xml"
    broken.write_text(jars.POM.read_text().replace("kafka_2.13", "kafka_0.0"))
    monkeypatch.setattr(jars, "POM", broken)
    monkeypatch.setenv("HEARSAY_CACHE", str(tmp_path / "cache"))
    with pytest.raises(ServerError, match=r"could not fetch Kafka(?s:.*)kafka_0\.0"):
        jars.kafka_jars()
    assert not jars.jars_directory().exists()
