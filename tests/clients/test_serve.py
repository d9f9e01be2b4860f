"""The program of the Python library's README against a running `hearsay serve`: it is counted."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from hearsay.cli import app
from hearsay.survey_files import read_survey
from hearsay_device import Device, DeviceError
from protocols.scheme import Scheme
from protocols.survey_text import parse_survey
from stream_app.local.log import LocalLog
from tests.gateway.forked import Forked, nursery

README = Path(__file__).parents[2] / "clients" / "python" / "README.md"
PATIENCE_SECONDS = 120
SURVEY = """
id: lunch
start: {start}
period: 1h
eps_inf: 3
eps_1: 1
memo_cap: 3
attributes:
  - {{name: dish, values: [soup, salad, pasta, none], other: none}}
"""


def test_the_program_of_the_readme_is_counted_and_needs_nothing_of_hearsay(tmp_path: Path) -> None:
    text = SURVEY.format(start=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))
    (tmp_path / "survey.yaml").write_text(text)
    scheme = Scheme(parse_survey(text))
    (program,) = re.findall(r"```py\n(.*?)```", README.read_text(), re.DOTALL)
    assert len(program.splitlines()) <= 10
    with nursery() as parent:
        arguments = ["serve", str(tmp_path / "survey.yaml"), "--data", str(tmp_path / "data")]
        server = Forked(parent, arguments, tmp_path / "serve.log").start().wait_until_ready()
        program = re.sub(r"https://[a-z.]+", f"http://127.0.0.1:{server.port}", program)
        program = re.sub(r'pin="\w+"', f'pin="{scheme.fingerprint}"', program)
        program += (
            "\nimport sys\nprint({name.partition('.')[0] for name in sys.modules} & {'numpy', 'protocols', 'hearsay'})"
        )
        environment = {**os.environ, "PYTHONPATH": str(README.parent)}
        said = [
            subprocess.run(
                [sys.executable, "-c", program], cwd=directory, env=environment, capture_output=True, text=True,
                timeout=PATIENCE_SECONDS, check=True,
            ).stdout.splitlines()
            for directory in (tmp_path, tmp_path, _made(tmp_path / "other"))
        ]  # fmt: skip
        assert server.leave() == 0, server.log.read_text()
    assert said == [[f"period 0: {status}", "set()"] for status in ("reported", "already reported", "reported")]
    reader = LocalLog(tmp_path / "data" / "collector" / "log" / "0.log", 0)
    frames = [
        pa.ipc.open_stream(record.value).read_all() for record in reader.read() if "frame" in str(record.content_type)
    ]
    reader.close()
    assert sum(frame.num_rows for frame in frames) == 2


def test_a_survey_that_is_signed_is_accepted_by_its_authors_key_and_by_no_other(tmp_path: Path) -> None:
    file = tmp_path / "survey.yaml"
    file.write_text(SURVEY.format(start=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")))
    unsigned = Scheme(read_survey(file)).fingerprint
    authors = [json.loads(_typed("survey", "sign", str(file), "--key", str(tmp_path / key), "--json")) for key in "ba"]
    assert {author["fingerprint"] for author in authors} == {unsigned, Scheme(read_survey(file)).fingerprint}
    with nursery() as parent:
        arguments = ["serve", str(file), "--data", str(tmp_path / "data")]
        server = Forked(parent, arguments, tmp_path / "serve.log").start().wait_until_ready()
        address = f"http://127.0.0.1:{server.port}"
        with Device(tmp_path / "my.device") as device:
            for author, code in ((authors[0]["author"], "signature"), ("YQ==", "settings")):
                with pytest.raises(DeviceError) as refused:
                    device.send(address, "lunch", {"dish": "soup"}, author=author)
                assert refused.value.code == code
            sent = device.send(address, "lunch", {"dish": "soup"}, author=authors[1]["author"])
        assert server.leave() == 0, server.log.read_text()
    assert sent.status == "reported"


def _typed(*words: str) -> str:
    done = CliRunner().invoke(app, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def _made(directory: Path) -> Path:
    directory.mkdir()
    return directory
