"""The table of mutations fits the code, and copies are apart from the checkout. `python -m tests.mutations` runs it."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

from tests.mutations.running import copy_checkout
from tests.mutations.table import ROOT, Mutation, all_mutations


@pytest.mark.parametrize("mutation", all_mutations(), ids=lambda mutation: f"{mutation.promise}. {mutation.about}")
def test_the_line_is_there_once_and_the_test_exists(mutation: Mutation) -> None:
    text = (ROOT / mutation.file).read_text()
    assert mutation.applied(text) != text
    file, _, function = mutation.test.partition("::")
    module = ast.parse((ROOT / file).read_text())
    assert function.partition("[")[0] in {node.name for node in module.body if isinstance(node, ast.FunctionDef)}


def test_every_promise_has_a_mutation() -> None:
    promises = (ROOT / "docs/design.md").read_text().partition("\n## Promises")[2].partition("\n## ")[0]
    numbers = {int(number) for number in re.findall(r"^(\d+)\. ", promises, flags=re.MULTILINE)}
    assert numbers == {mutation.promise for mutation in all_mutations()}


def test_a_copy_has_what_git_does_not_ignore_and_what_is_compiled(tmp_path: Path) -> None:
    checkout, copy = tmp_path / "checkout", tmp_path / "copy"
    for name in (".gitignore", "room/a.py", "room/__pycache__/a.pyc", "hearsay-data/secret", "new.py"):
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        (checkout / name).write_text("hearsay-data/\n__pycache__/\n")
    subprocess.run(["git", "init", "--quiet"], cwd=checkout, check=True)
    copy_checkout(checkout, copy)
    found = {path.relative_to(copy).as_posix() for path in copy.rglob("*") if path.is_file()}
    assert found == {".gitignore", "room/a.py", "room/__pycache__/a.pyc", "new.py"}
    assert (copy / "room/a.py").stat().st_mtime_ns == (checkout / "room/a.py").stat().st_mtime_ns
    (copy / "room/a.py").write_text("changed")
    assert (checkout / "room/a.py").read_text() != "changed"
