"""The demo, killed again and again, ends with the very bytes of an undisturbed one.

A failure would look like this: a final whose n is short (reports lost), whose n is over (reports doubled), or whose
estimates differ (a memo or a report was drawn again).
"""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from stream_app.local import LocalStore

PEOPLE = 3000
KILLS = 4
PATIENCE_SECONDS = 240


def start(data: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "hearsay", "demo", "--devices", str(PEOPLE), "--data", str(data)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)


def logged_bytes(data: Path) -> int:
    return sum(file.stat().st_size for file in (data / "collector" / "log").glob("*.log"))


def published(data: Path) -> dict[str, list[tuple[bytes, bytes]]]:
    store = LocalStore.existing(data / "collector")
    try:
        return {topic: [(m.key, m.value) for m in store.messages(topic)] for topic in ("histograms", "mobility")}
    finally:
        store.close()


def kill_when(demo: subprocess.Popen[bytes], data: Path, reached: int) -> None:
    """SIGKILL to the whole group (the demo and its Redis) as soon as the log has grown so far, or if it ended."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while logged_bytes(data) < reached and demo.poll() is None and time.monotonic() < deadline:
        time.sleep(0.002)
    subprocess.run(["pkill", "-KILL", "-g", str(demo.pid)], check=False)
    demo.wait(timeout=60)


@pytest.mark.long(part="kills")
@pytest.mark.integration
def test_a_demo_killed_again_and_again_publishes_the_same_bytes(tmp_path: Path) -> None:
    calm, troubled = tmp_path / "calm", tmp_path / "troubled"
    assert start(calm).wait(PATIENCE_SECONDS) == 0
    troubled.mkdir()
    (troubled / "redis.new").touch()  # its store is new, though its devices are not
    for secret in calm.glob("*.key"):  # the same devices, the same noise
        shutil.copy2(secret, troubled / secret.name)
    whole = logged_bytes(calm)
    dice = random.Random(20170531)
    killed = 0
    for moment in sorted(dice.random() for _ in range(KILLS)):
        demo = start(troubled)
        kill_when(demo, troubled, int(moment * whole))
        killed += demo.returncode == -signal.SIGKILL
    assert killed >= KILLS - 2, "the kills came too late to trouble anything"
    assert start(troubled).wait(PATIENCE_SECONDS) == 0
    assert len(published(calm)["histograms"]) == 7
    assert published(troubled) == published(calm)
