"""What measured figures say about our own code: a figure that cannot be is a defect."""

from __future__ import annotations

from collections.abc import Iterable

from audit.intervals import Trials
from audit.report import Figure, Finding


def defects(figures: Iterable[Figure], alpha: float) -> list[Finding]:
    """Figures that contradict what is exact, all of them together with a chance of at most alpha if nothing is wrong.

    A proven loss above the promise, and an attack that is right more often than is computed for it, or, if it knows all
    that the best attacker knows, less often: the devices then do not do what the survey says.
    """
    half = alpha / 2  # the other half is for proven losses
    known = [figure for figure in figures if figure.exact and figure.best is not None and figure.measured is not None]
    chances = [figure for figure in known if figure.unit == "chance" and figure.trials]
    found = [
        Finding(
            code="loss-above-promise",
            text=f"{figure.name}: a loss of {figure.measured:.4g} is proven, and {figure.best:.4g} is promised",
            defect=True,
        )
        for figure in figures
        if figure.attack == "epsilon" and figure.low is not None and figure.best is not None
        and figure.low > figure.best + 1e-9
    ]  # fmt: skip
    for figure in chances:
        assert figure.best is not None and figure.measured is not None and figure.trials is not None
        low, high = Trials(figure.measured * figure.trials, figure.trials).interval(half / len(chances))
        if low > figure.best or (figure.reached and figure.best > high):
            text = (
                f"{figure.name}: the attack was right in {figure.measured:.2%} of {figure.trials:,.0f}, which means "
                f"{low:.2%} to {high:.2%}, and {figure.best:.2%} is computed"
            )
            found.append(Finding(code="not-as-computed", text=text, defect=True))
    return found
