"""What somebody knows about numbers of reports: whole numbers with linear constraints (scipy.optimize.milp)."""

from collections.abc import Container, Iterable, Mapping, Sequence
from copy import deepcopy
from typing import NamedTuple

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array

MOST = 200  # reports in one cell and stage: more possible numbers could only hide more
MANY = 10**6
INFEASIBLE = 2  # the status of a program without a solution


class Cell(NamedTuple):
    """Reports of one kind with one gap in one period. They came in one stage: the time between two publications."""

    period: int
    kind: str
    gap: int
    stage: int


Cells = Sequence[Cell]
Numbers = Mapping[Cell, int]


class Fact(NamedTuple):
    """These cells have together at least `low` and at most `high` reports."""

    cells: Cells
    low: int = 0
    high: int = MANY


class Knowledge:
    """The numbers that somebody thinks possible who knows some facts."""

    def __init__(self, cells: Iterable[Cell], minimum: int) -> None:
        self.cells = list(cells)
        self.minimum = minimum
        self._places = {cell: place for place, cell in enumerate(self.cells)}
        self._size = len(self.cells)
        self._rows: list[tuple[Sequence[int], Sequence[int], int, int]] = []  # places, factors, low, high

    def select(
        self,
        *,
        periods: Container[int] | None = None,
        kinds: Container[str] | None = None,
        gaps: Container[int] | None = None,
        stages: Container[int] | None = None,
    ) -> list[Cell]:
        """The cells of these periods, kinds, gaps and stages; None: of all."""
        chosen = (periods, kinds, gaps, stages)
        return [c for c in self.cells if all(of is None or one in of for one, of in zip(c, chosen, strict=True))]

    def tell(self, *facts: Fact) -> None:
        """All of these are so."""
        for fact in facts:
            self._add(fact.cells, {}, fact.low, fact.high)

    def join(self, other: "Knowledge") -> None:
        """What is known of some of the cells."""
        places = {place: self._places[cell] for cell, place in other._places.items()}
        places |= {place: self._size + place - len(other.cells) for place in range(len(other.cells), other._size)}
        self._size += other._size - len(other.cells)
        self._rows += [([places[place] for place in row[0]], *row[1:]) for row in other._rows]

    def tell_any(self, alternatives: Sequence[Sequence[Fact]]) -> None:
        """All facts of one of these alternatives, or of several, are so."""
        chosen = range(self._size, self._size + len(alternatives))
        self._size += len(alternatives)
        self._add((), dict.fromkeys(chosen, 1), 1, len(alternatives))
        for choice, facts in zip(chosen, alternatives, strict=True):
            for cells, low, high in facts:
                most = MOST * len(cells)
                if low > 0:
                    self._add(cells, {choice: -low}, 0, most)
                if high < most:
                    self._add(cells, {choice: most - high}, 0, most)

    def _add(self, cells: Cells, choices: Mapping[int, int], low: int, high: int) -> None:
        places = [*(self._places[cell] for cell in cells), *choices]
        self._rows.append((places, [*(1 for _ in cells), *choices.values()], low, high))

    def possible(self, least: Cells = (), most: Cells = ()) -> Numbers | None:
        """Possible numbers with the fewest reports in `least`, or the most in `most`; None: nothing is possible."""
        goal, upper = np.zeros(self._size), np.ones(self._size)
        goal[[self._places[cell] for cell in least]] = 1
        goal[[self._places[cell] for cell in most]] = -1
        upper[: len(self.cells)] = MOST
        rows = np.repeat(np.arange(len(self._rows)), [len(row[0]) for row in self._rows])
        places, factors = ([entry for row in self._rows for entry in row[part]] for part in (0, 1))
        table = coo_array((factors, (rows, places)), shape=(len(self._rows), self._size)).tocsr()
        between = LinearConstraint(table, [row[2] for row in self._rows], [row[3] for row in self._rows])
        found = milp(goal, integrality=np.ones(self._size), bounds=Bounds(0, upper), constraints=between)
        if found.status == INFEASIBLE:
            return None
        assert found.success, found.message
        return {cell: round(found.x[place]) for place, cell in enumerate(self.cells)}

    def allows(self, numbers: Numbers) -> bool:
        """Whether these numbers are possible."""
        known = deepcopy(self)
        known.tell(*(Fact([cell], numbers.get(cell, 0), numbers.get(cell, 0)) for cell in self.cells))
        return known.possible() is not None

    def coarse(self) -> Numbers | None:
        """Possible numbers in which every (period, kind, gap) has 0 or at least the minimum; None: there are none."""
        known = deepcopy(self)
        for period, kind, gap in sorted({cell[:3] for cell in self.cells}):
            cells = self.select(periods={period}, kinds={kind}, gaps={gap})
            known.tell_any([[Fact(cells, 0, 0)], [Fact(cells, self.minimum)]])
        return known.possible(least=self.cells)

    def leaks(self, sets: Iterable[Cells], known: Iterable[Numbers] = ()) -> list[Fact]:
        """The sets, of these, that are known to have 1 to minimum - 1 reports. `known` are possible numbers."""
        found, pool = [], list(known)
        for cells in sets:
            if any(not 0 < sum(numbers.get(c, 0) for c in cells) < self.minimum for numbers in pool):
                continue
            fewest, most = self.possible(least=cells), self.possible(most=cells)
            assert fewest is not None and most is not None
            pool += [fewest, most]
            low, high = (sum(numbers[cell] for cell in cells) for numbers in (fewest, most))
            if low > 0 and high < self.minimum:
                found.append(Fact(cells, low, high))
        return found
