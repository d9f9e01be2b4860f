"""What a survey must say before it is collected: whether published numbers of visitors have noise, or are exact."""

from protocols.errors import SurveyError


def undecided(survey: str, error: int | None = None) -> SurveyError:
    """The refusal of a survey that says neither. `error`: by how much its numbers of a period would be wrong (95 %).

    >>> print(undecided("buttons", 27).hint)
    write one of these two lines:
    presence_epsilon: 1   every published number and table has noise, a number of a period about ± 27 devices (95 %); \
whether a device reported in a period is protected
    publish_from: 20      numbers are exact, and those below 20 are not shown; who came and who stayed away is NOT \
protected
    """
    noise = "" if error is None else f", a number of a period about ± {error:,} devices (95 %)"
    what = f"survey {survey!r} does not say whether its published numbers have noise or are exact"
    protected = (
        f"presence_epsilon: 1   every published number and table has noise{noise}; whether a device reported in a "
        "period is protected"
    )
    exact = (
        "publish_from: 20      numbers are exact, and those below 20 are not shown; who came and who stayed away is "
        "NOT protected"
    )
    return SurveyError(what, "\n".join(["write one of these two lines:", protected, exact]))
