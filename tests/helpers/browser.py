"""Looking at a page with a real browser that has no network."""

from __future__ import annotations

import json
import re
import shutil
import struct
import subprocess
import zlib
from dataclasses import dataclass
from html import unescape
from pathlib import Path

import numba
import numpy as np
import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")

# Writes into the document where every chart ended up.
WITNESS = """<script>
addEventListener("load", () => {
  const boxes = {};
  for (const chart of document.querySelectorAll(".chart")) {
    const { x, y, width, height } = chart.getBoundingClientRect();
    if (height) boxes[chart.id] = [x, y, width, height].map(Math.round);
  }
  document.body.dataset.seen = JSON.stringify(boxes);
});
</script></body>"""


@dataclass(frozen=True)
class View:
    """What the browser made of a page: the finished document, its picture, and where the charts are in it."""

    document: str
    picture: np.ndarray  # [y, x, colour]
    charts: dict[str, tuple[int, int, int, int]]  # x, y, width, height

    def chart(self, name: str) -> np.ndarray:
        x, y, width, height = self.charts[name]
        return self.picture[y : y + height, x : x + width]


def find_browser() -> str:
    """The program. Skips the test where there is none."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        pytest.skip(f"no browser found (looked for {', '.join(BROWSERS)})")
    return browser


def look(page: str, directory: Path, height: int, dark: bool = False) -> View:
    """Open a page 1200 pixels wide, light or dark. Skips the test where there is no browser."""
    browser = find_browser()
    file, picture = directory / "page.html", directory / "page.png"
    file.write_text(page.replace("</body>", WITNESS), encoding="utf-8")
    command = [
        browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
        "--force-device-scale-factor=1", "--virtual-time-budget=20000", f"--window-size=1200,{height}",
        "--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={directory / 'profile'}",
        f"--blink-settings=preferredColorScheme={0 if dark else 1}",
    ]  # fmt: skip
    document = _run([*command, "--dump-dom", file.as_uri()])
    _run([*command, f"--screenshot={picture}", file.as_uri()])
    boxes = re.search(r'data-seen="([^"]*)"', document)
    assert boxes, "the page did not finish loading"
    return View(document, read_png(picture), json.loads(unescape(boxes[1])))


def _run(command: list[str]) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout


def read_png(path: Path) -> np.ndarray:
    """The pixels [y, x, colour] of a PNG of eight bits per colour, without interlacing."""
    raw, place, packed = path.read_bytes(), 8, b""
    width = height = kind = 0
    while place < len(raw):
        length, name = struct.unpack_from(">I4s", raw, place)
        chunk = raw[place + 8 : place + 8 + length]
        if name == b"IHDR":
            width, height, depth, kind, _, _, interlaced = struct.unpack(">IIBBBBB", chunk)
            assert (depth, interlaced) == (8, 0)
        elif name == b"IDAT":
            packed += chunk
        place += 12 + length
    colours = {2: 3, 6: 4}[kind]
    rows = np.frombuffer(zlib.decompress(packed), dtype=np.uint8).reshape(height, 1 + width * colours)
    return _unfiltered(rows, colours).reshape(height, width, colours)[..., :3]


@numba.njit(cache=True)
def _unfiltered(rows: np.ndarray, step: int) -> np.ndarray:  # pragma: no cover (compiled)
    """Undo PNG's filters: every byte was stored as a difference from its left and upper neighbours."""
    height, width = rows.shape[0], rows.shape[1] - 1
    out = np.zeros((height, width), dtype=np.uint8)
    for y in range(height):
        how = rows[y, 0]
        for x in range(width):
            left = int(out[y, x - step]) if x >= step else 0
            up = int(out[y - 1, x]) if y else 0
            corner = int(out[y - 1, x - step]) if y and x >= step else 0
            guess = 0
            if how == 1:
                guess = left
            elif how == 2:
                guess = up
            elif how == 3:
                guess = (left + up) // 2
            elif how == 4:
                far_left, far_up, far_corner = abs(up - corner), abs(left - corner), abs(left + up - 2 * corner)
                guess = (
                    left if far_left <= far_up and far_left <= far_corner else up if far_up <= far_corner else corner
                )
            out[y, x] = (int(rows[y, x + 1]) + guess) & 255
    return out
