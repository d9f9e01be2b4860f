"""What fails for one survey alone."""

import pytest

from protocols.errors import SurveyDefect, SurveyError
from protocols.scheme import confined_to


def test_what_nobody_foresaw_is_a_defect_of_that_survey() -> None:
    with pytest.raises(SurveyDefect, match="'lunch' cannot be collected: IndexError"), confined_to("lunch"):
        raise IndexError("list index out of range")


@pytest.mark.parametrize(
    "error", [SurveyError("budgets", "write them"), ModuleNotFoundError("No module named 'scipy'")]
)
def test_what_explains_itself_and_packages_that_are_not_installed_are_no_defects(error: Exception) -> None:
    with pytest.raises(type(error)) as raised, confined_to("lunch"):
        raise error
    assert raised.value is error
