"""A sink that somebody else might write: a folder of JSON files. Also as they should not write it."""

from collections.abc import Mapping
from pathlib import Path
from secrets import token_hex

from servers.private_files import write_private
from stream_app.finals import FinalKey
from views.sinks import Made


class FolderSink:
    """A file for each result, and one for each survey that says through which period it is complete."""

    def __init__(self, address: str) -> None:
        self._root = Path(address.removeprefix("folder:"))
        self._root.mkdir(parents=True, exist_ok=True)
        self._waiting: list[Made] = []

    def complete(self) -> Mapping[str, int]:
        return {file.stem: int(file.read_text()) for file in self._root.glob("*.reached")}

    def add(self, made: Made) -> None:
        if made.key.period is not None:
            self._waiting.append(made)

    def flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        for made in waiting:
            self._write(made)
        for made in waiting:
            self._note(made.key)

    def _write(self, made: Made) -> None:
        survey, period = made.key
        write_private(self._root / f"{survey}+{period}+{made.view.kind}.json", made.result.model_dump_json())

    def _note(self, key: FinalKey) -> None:
        reached = max(self.complete().get(key.survey, -1), key.period or 0)
        write_private(self._root / f"{key.survey}.reached", str(reached))

    def close(self) -> None:
        """Nothing is open."""


def content(root: Path) -> Mapping[FinalKey, list[str]]:
    found: dict[FinalKey, list[str]] = {}
    for file in sorted(root.glob("*.json")):
        survey, period, *_ = file.name.split("+")
        found.setdefault(FinalKey(survey, int(period)), []).append(file.read_text())
    return found


class Doubling(FolderSink):
    """Writes a result again if it is told to."""

    def _write(self, made: Made) -> None:
        survey, period = made.key
        write_private(self._root / f"{survey}+{period}+{token_hex(4)}.json", made.result.model_dump_json())


class Hasty(FolderSink):
    """Says that results are there before they are."""

    def add(self, made: Made) -> None:
        super().add(made)
        self._note(made.key)


class Racing(FolderSink):
    """Forgets what another one has written."""

    def _note(self, key: FinalKey) -> None:
        for file in self._root.glob(f"{key.survey}+*.json"):
            if int(file.name.split("+")[1]) > (key.period or 0):
                file.unlink()
        super()._note(key)
