"""What benchmarks of two commits compare is what each of the two commits has."""

import subprocess
from pathlib import Path

import pytest

from bench import against
from bench._runs import python_output


def test_another_commit_is_measured_with_its_own_modules_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(against, "ROOT", tmp_path)

    def git(*words: str) -> str:
        settings = "-c", "user.name=nobody", "-c", "user.email=nobody@example.org"
        return subprocess.run(
            ["git", *settings, *words], cwd=tmp_path, check=True, capture_output=True, text=True, timeout=60
        ).stdout

    git("init", "--quiet")
    for text in ("old", "new"):
        (tmp_path / "hearsay.py").write_text(f"print({text!r})")
        git("add", ".")
        git("commit", "--quiet", "--message", text)

    def measure_and_fail() -> None:
        with against.checked_out("HEAD~1") as tree:
            found.extend(python_output("-m", "hearsay", tree=each).strip() for each in (tree, tmp_path))
            raise TimeoutError

    found: list[str] = []
    with pytest.raises(TimeoutError):
        measure_and_fail()
    assert found == ["old", "new"]
    assert len(git("worktree", "list").splitlines()) == 1
