"""An environment that also has a distribution of the former name."""

import importlib.metadata
import shlex
from pathlib import Path

import pytest

from servers.distribution import folders_of_packages, former_name


def plant(folder: Path, version: str, packages: str) -> None:
    metadata = folder / f"hearsay-{version}.dist-info"
    metadata.mkdir()
    if packages:
        (metadata / "top_level.txt").write_text(packages)


def test_an_older_version_of_this_program_is_named_with_two_commands_in_their_order(tmp_path: Path) -> None:
    plant(tmp_path, "0.2.0", "analytics\nhearsay\nmemo_store\n")
    former = former_name([tmp_path])
    assert former is not None
    assert "hearsay 0.2.0 is installed here, too: an older version of this program" in former.what
    first, second = former.cure.split(", then ")
    assert "pip uninstall --yes hearsay hearsay-ldp" in first
    assert "pip install 'hearsay-ldp" in second
    assert len(shlex.split(second.removeprefix("`").removesuffix("`"))) == 3, "it can be pasted"


@pytest.mark.parametrize("packages", ["hearsay\n", ""])
def test_a_program_of_somebody_else_is_called_so(packages: str, tmp_path: Path) -> None:
    plant(tmp_path, "1.4.1", packages)
    former = former_name([tmp_path])
    assert former is not None and not former.ours
    assert "a program of somebody else" in former.what


def test_other_packages_whose_names_begin_alike_are_no_former_name(tmp_path: Path) -> None:
    for name in ("hearsay_ldp-0.3.0", "hearsay_device-0.2.0", "hearsay-tools-1.0"):
        (tmp_path / f"{name}.dist-info").mkdir()
    assert former_name([tmp_path]) is None


def test_files_of_this_version_in_a_clone_that_was_installed_as_0_2_have_a_hint_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever updates such a clone has the old name's metadata and none of the new one's."""
    plant(tmp_path, "0.2.0", "memo_store\n")
    monkeypatch.setattr(importlib.metadata, "distribution", not_installed)
    former = former_name([tmp_path])
    assert former is not None
    assert former.cure.endswith("then `pip install 'hearsay-ldp'`")


def not_installed(name: str) -> None:
    raise importlib.metadata.PackageNotFoundError(name)


def test_this_environment_has_one_name() -> None:
    assert all(folder.is_dir() for folder in folders_of_packages())
    assert former_name() is None
