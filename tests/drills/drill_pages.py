"""Pages whose commands take minutes."""

from pathlib import Path

import pytest

from tests.docs.pages import Page, pages
from tests.docs.test_commands import clone, run_page

__all__ = ["clone"]  # a fixture
DRILLS = [page for page in pages() if page.is_drill]


@pytest.mark.parametrize("page", DRILLS, ids=str)
def test_the_commands_of_a_page_work_as_shown(
    page: Page, clone: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    run_page(page, clone, tmp_path_factory.mktemp("outputs"))
