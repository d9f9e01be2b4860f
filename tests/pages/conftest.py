"""The page of a town."""

from pathlib import Path

import pytest

from pages.static import static_page
from tests.pages.towns import town_events


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a town."""
    file = tmp_path_factory.mktemp("pages") / "town.html"
    file.write_text(static_page("A town & its <people>", town_events()), encoding="utf-8")
    return file
