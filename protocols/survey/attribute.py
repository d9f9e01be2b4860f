"""One attribute of a survey: its possible values, and how answers are protected."""

from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    WithJsonSchema,
    model_serializer,
    model_validator,
)

from protocols.mechanisms.catalogue import NAMES, RECORDS
from protocols.mechanisms.record import MAX_VALUES, MechanismRecord
from protocols.survey.grid import Grid, Reach
from protocols.survey.names import Name, Strict
from protocols.survey.roles import check_role, dwell_times

MOST_VALUES = max(record.max_values for record in RECORDS.values())
MOST_LIKELIEST = 500  # the likeliest histogram takes seconds for so many values, and the cube of them for more
MIN_SHARE = 1e-6  # of a prior, and of the devices that draw a question
FILE_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9 ._-]{0,120}\.(geojson|json)$"
BY_SIZE = (
    "with memos (eps_inf): loloha up to 255 values, l-grr and l-osue up to 65,536; without (eps): grr and oue up to "
    "65,536, olh up to 1,000,000. For more, ask for groups of values first, and for the values of some groups in a "
    "second survey"
)
"""What to take at which number of values."""

Share = Annotated[float, Field(ge=MIN_SHARE, lt=1)]


def _known_mechanism(name: str) -> str:
    if name not in NAMES:
        raise ValueError(f"should be one of {', '.join(NAMES)}")
    return name


MechanismName = Annotated[
    str, AfterValidator(_known_mechanism), WithJsonSchema({"type": "string", "enum": list(NAMES)})
]
PARAMETERS = "; ".join(f"{name}: {record.parameter}" for name, record in RECORDS.items() if record.parameter)


class Span(Strict):
    """An ordered range of whole numbers, cut into steps."""

    first: int = 0
    last: int
    step: int = Field(1, ge=1)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.last < self.first:
            raise ValueError(f"last: {self.last} is below first = {self.first}; swap them")
        if (self.last - self.first) // self.step >= MOST_VALUES:
            raise ValueError(f"last: {self.last} gives more than {MOST_VALUES:,} values; choose a larger step")
        return self

    def names(self) -> tuple[str, ...]:
        """The values of the range.

        >>> Span(last=24, step=10).names()
        ('0-9', '10-19', '20-24')
        """
        return tuple(str(low) if self.step == 1 else f"{low}-{high}" for low, high in self.numbers())

    def numbers(self) -> list[tuple[float, float]]:
        """The smallest and the largest number of each value."""
        starts = range(self.first, self.last + 1, self.step)
        return [(start, min(start + self.step - 1, self.last)) for start in starts]


class Attribute(Strict):
    """One attribute: its name, its possible values, and how answers are protected."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_]{0,62}$")
    values: tuple[Name, ...] = Field((), max_length=MOST_VALUES)
    other: Name | None = None
    several: int | None = Field(None, ge=1)
    range: Span | None = None
    grid: Grid | None = None
    geo: Reach | None = None
    geo_inf: Reach | None = None
    areas: str | None = Field(None, pattern=FILE_PATTERN)
    groups: dict[Name, tuple[Name, ...]] = Field(default_factory=dict)
    role: Literal["plain", "area", "dwell", "amount", "transition"] = "plain"
    quantiles: tuple[Annotated[float, Field(gt=0, lt=1)], ...] = Field((0.5, 0.9), max_length=9)
    correction: Literal["usual", "likeliest"] = "usual"
    mechanism: MechanismName = "auto"
    parameter: int | None = Field(None, ge=1, le=MAX_VALUES, description=PARAMETERS)
    prior: dict[Name, Share] | None = None
    share: Share | None = None

    @model_validator(mode="before")
    @classmethod
    def _name_the_values(cls, data: Any) -> Any:
        """Name the values of a range or a grid. A wrong one is left to its own validation."""
        if isinstance(data, dict) and not data.get("values"):
            try:
                if isinstance(data.get("range"), dict | Span):
                    return {**data, "values": Span.model_validate(data["range"]).names()}
                if isinstance(data.get("grid"), dict | Grid):
                    return {**data, "values": Grid.model_validate(data["grid"]).names}
            except ValidationError:
                return data
        return data

    @model_validator(mode="after")
    def _check(self) -> Self:
        where = f"attribute {self.name!r}"
        if len(self.values) < 2:
            raise ValueError(f"{where} has {len(self.values)} value(s); give at least 2 (values, a range, or a grid)")
        self._check_grid(where)
        refuse_twice(self.values, f"{where} lists", "name each value once")
        if self.correction == "likeliest" and self.k > MOST_LIKELIEST:
            raise ValueError(
                f"{where}: correction: likeliest is for up to {MOST_LIKELIEST} values, not {self.k:,}; leave it out"
            )
        if self.range is not None and self.values != self.range.names():
            raise ValueError(f"{where} has both values and a range; keep one")
        try:
            if self.role != "amount" or self.range is None:  # a range may have negative numbers
                check_role(self.role, self.values)
        except ValueError as error:
            raise ValueError(f"{where}, role {self.role}: {error}") from None
        if self.other is not None and self.other not in self.values:
            raise ValueError(f"{where}: other is {self.other!r}, which is not among the values; list it, too")
        known = set(self.values)
        for group, members in self.groups.items():
            _check_group(f"{where}: group {group!r}", members, known)
        if self.prior is not None:
            self._check_prior(where, self.prior)
        self.check_mechanism(where)
        return self

    @model_serializer(mode="wrap")
    def _without_implied(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """The values of a long range are not written out: they would take more than the rest of a survey."""
        data: dict[str, Any] = dump(self)
        if self.range is not None and self.k > MAX_VALUES:
            data.pop("values", None)
        return data

    def _check_grid(self, where: str) -> None:
        if self.grid is None:
            for key in ("geo", "geo_inf", "areas"):
                if getattr(self, key) is not None:
                    other = ", or name the file in the survey itself, for a map" if key == "areas" else ""
                    raise ValueError(f"{where}: {key} is for places; declare a grid, or leave it out{other}")
            return
        if self.range is not None or self.values != self.grid.names:
            raise ValueError(f"{where} has a grid, and values or a range besides; keep one")
        if self.grid.inside == "areas" and self.areas is None:
            raise ValueError(f"{where}: inside: areas needs the file of its areas; name it as areas")
        if self.prior is not None and self.placed:
            raise ValueError(f"{where}: places have no prior; leave it out")
        if self.geo is not None and self.geo_inf is not None:
            one, ever = self.grid.rate(self.geo), self.grid.rate(self.geo_inf)
            if one > ever * 0.999:
                raise ValueError(
                    f"{where}: geo costs {one:.3g} a cell side and must be below geo_inf = {ever:.3g}; "
                    "leave geo out to send the memo"
                )

    def check_mechanism(self, where: str) -> None:
        """Raise ValueError if the mechanism takes no such parameter, or not so many values."""
        record = RECORDS.get(self.mechanism)  # None: it is yet to be chosen
        if record is not None and record.needs_grid != self.placed:
            need = "needs a grid, with geo or geo_inf" if record.needs_grid else "does not protect by distance"
            raise ValueError(f"{where}: {self.mechanism} {need}; correct one of them")
        if self.parameter is not None and (record is None or not record.parameter):
            raise ValueError(f"{where}: {self.mechanism} takes no parameter; leave it out")
        if record is not None:
            self.check_size(where, record)

    def check_size(self, where: str, record: MechanismRecord) -> None:
        """Raise ValueError if a mechanism takes fewer values."""
        if self.k > record.max_values:
            if record.needs_grid:
                raise ValueError(
                    f"{where}: {record.name} takes at most {record.max_values:,} cells, not {self.k:,}; choose "
                    "larger cells, or a whole grid without inside, for which geo-grid takes up to 65,536"
                )
            raise ValueError(
                f"{where}: {record.name} takes at most {record.max_values:,} values, not {self.k:,}; "
                f"use fewer values (in a range a larger step), or another mechanism: {BY_SIZE}"
            )

    def _check_prior(self, where: str, prior: dict[str, float]) -> None:
        if set(prior) != set(self.values):
            differs = min(set(prior) ^ set(self.values))
            raise ValueError(
                f"{where}: the prior and the values disagree about {differs!r}; give every value one share"
            )
        if abs(sum(prior.values()) - 1) > 1e-9:
            raise ValueError(f"{where}: the prior sums to {sum(prior.values()):.12g}; make it sum to 1")

    @property
    def k(self) -> int:
        return len(self.values)

    @property
    def numbers(self) -> list[tuple[float, float]]:
        """The smallest and the largest number of each value.

        >>> Attribute(name="a", range=Span(last=24, step=10)).numbers
        [(0, 9), (10, 19), (20, 24)]
        """
        return dwell_times(self.values)[0] if self.range is None else self.range.numbers()

    @property
    def placed(self) -> bool:
        """Whether its values are places that are protected by distance."""
        return self.geo is not None or self.geo_inf is not None

    @property
    def ordered(self) -> bool:
        return self.range is not None


def _check_group(where: str, members: tuple[str, ...], known: set[str]) -> None:
    if not members:
        raise ValueError(f"{where} is empty; name its values or leave it out")
    refuse_twice(members, f"{where} lists", "name each value once")
    unknown = set(members) - known
    if unknown:
        raise ValueError(f"{where} names {min(unknown)!r}, which is not among the values; correct one of them")


def refuse_twice(names: tuple[str, ...], what: str, fix: str) -> None:
    """Raise ValueError if a name is in the list twice."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ValueError(f"{what} {name!r} twice; {fix}")
        seen.add(name)


MOST_AHEAD = 1000
LONGEST_SEASON = 2000
LONGEST_NOWCAST_SEASON = 24


class NowcastPlan(Strict):
    """How shares are estimated with the help of earlier periods. They are made from published results: no terms."""

    seasons: tuple[Annotated[int, Field(ge=2, le=LONGEST_NOWCAST_SEASON)], ...] | None = Field(None, max_length=1)
    drift: float | None = Field(None, gt=0, le=100)


class ForecastPlan(Strict):
    """Forecasts to publish after every period. They are made from published results, so they are no terms."""

    ahead: int = Field(ge=1, le=MOST_AHEAD)
    seasons: tuple[Annotated[int, Field(ge=2, le=LONGEST_SEASON)], ...] = Field((), max_length=3)
