"""A survey: everything devices and collectors must agree on.

Unknown keys are refused, and every rule that can be checked is checked at load. The declared terms, together with what
they are compiled to, make the fingerprint (`Scheme.fingerprint`).
"""

import re
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AwareDatetime,
    BeforeValidator,
    Field,
    SerializerFunctionWrapHandler,
    ValidationInfo,
    field_validator,
    model_serializer,
    model_validator,
)

from protocols.errors import SurveyError
from protocols.mechanisms.record import MAX_VALUES
from protocols.survey.attribute import FILE_PATTERN, Attribute, ForecastPlan, NowcastPlan, refuse_twice
from protocols.survey.calendar import DAY, HOUR, Calendar, TimeZone, Unit, Visitors, calendar_of, micros, resolve
from protocols.survey.crosses import Cross, check_cross, crossed, shares_of
from protocols.survey.html import html_table
from protocols.survey.names import Duration, Strict, Text, format_duration
from protocols.survey.released import RELEASED_OF, Released, ReleasedOf
from protocols.survey.sets import check_set, check_thresholds, padded, thresholds
from protocols.survey.versions import (
    MOST_WINDOWS,
    Counted,
    Rolling,
    as_written,
    check_released,
    foreign_keys,
    in_order,
    released,
    with_fields,
    written,
)
from protocols.survey.visits import Visits, visits_of

Solution = Literal["smp", "spl", "rs+fd", "rs+rfd"]

ID_PATTERN = r"^[a-z0-9][a-z0-9._-]{0,127}$"
MIN_EPS, MAX_EPS = 0.001, 20.0  # below, nothing can be learnt; above, nothing is protected
MAX_COUNTERS = 1 << 20  # of one period: horizon times all values
MAX_GRACE_PERIODS = 1000
MAX_ONE_IN = 10_000
MOST_HIDDEN = 10**9  # the largest number below which numbers are not shown
MOST_USUAL_NOWCASTS = 200  # values and groups: they take a tenth of a second in each period


def _moment(value: Any) -> Any:
    if isinstance(value, str) and not re.fullmatch(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(Z|[+-]\d\d:\d\d)", value):
        raise ValueError("not a moment with a time zone; write it like 2026-01-01T00:00:00Z")
    return value


def _budget(value: Any) -> Any:
    if isinstance(value, str) and "_" in value:  # Python and YAML read the typing error 1_0 as 10
        raise ValueError("a _ in a number; write it like 1.0")
    return value


def _also_a_name(schema: dict[str, Any]) -> None:
    schema["anyOf"].insert(0, {"type": "string"})


Epsilon = Annotated[float, Field(ge=MIN_EPS), BeforeValidator(_budget)]
Moment = Annotated[AwareDatetime, BeforeValidator(_moment)]
SIGNATURE_PATTERN = r"^[A-Za-z0-9+/]{86}==$"
"""64 bytes in base64."""
OUTAGE = timedelta(days=7)
"""How long no worker may run before reports of a `clock: wall` survey are refused as too far ahead."""


class Central(Strict):
    """What is published so that readers of results learn little about one device (PROTOCOLS 11)."""

    delta: float = Field(1e-8, gt=0, le=1e-3)
    target: float | None = Field(None, gt=0, le=20)
    per: Duration = timedelta(weeks=1)


LISTS = ("numbers", "new", "tables", "rolling")
"""What is released with noise."""


class Survey(Strict):
    """The terms of one collection.

    `version` is that of the terms; 2 stands for version 1, too. Texts do not have it: it follows from where a text was
    read. Stored surveys of version 3 have it.
    """

    version: Literal[2, 3] = Field(2, description="the version of the terms; texts do not have it")
    id: str = Field(pattern=ID_PATTERN)
    title: Text = ""
    description: Text = ""
    start: Moment
    period: Duration
    time_zone: TimeZone | None = Field(None, json_schema_extra=_also_a_name)
    eps_inf: Epsilon | None = None
    eps_1: Epsilon | None = None
    eps: Epsilon | None = None
    one_in: int = Field(1, ge=1, le=MAX_ONE_IN)
    solution: Solution = "smp"
    calibration: Literal["exact", "published"] = "exact"
    guarantee: Literal["tuple", "attribute", "published"] = "tuple"
    horizon: int = Field(1, ge=1, le=65535)
    visitors: Visitors | None = Field(None, json_schema_extra=_also_a_name)
    clock: Literal["wall", "source"] = "wall"
    grace: Duration = Field(timedelta(0), json_schema_extra={"default": "0s"})
    minimum: int = Field(0, ge=0, le=MOST_HIDDEN)
    publish_from: int | None = Field(None, ge=0, le=MOST_HIDDEN)
    memo_cap: int | None = Field(None, ge=1, le=MAX_VALUES)
    presence_epsilon: Annotated[float, Field(ge=MIN_EPS, le=MAX_EPS), BeforeValidator(_budget)] | None = None
    numbers: tuple[ReleasedOf, ...] | None = Field(None, min_length=1, max_length=len(RELEASED_OF))
    new: tuple[ReleasedOf, ...] | None = Field(None, max_length=len(RELEASED_OF))
    tables: tuple[ReleasedOf, ...] | None = Field(None, max_length=len(RELEASED_OF))
    rolling: tuple[Rolling, ...] | None = Field(None, max_length=MOST_WINDOWS)
    central: Central | None = None
    devices: int | None = Field(None, ge=1, le=10**10)
    forecast: ForecastPlan | None = None
    nowcast: NowcastPlan | None = Field(
        None,
        description=f"nowcasts of every period; without it, as usual up to {MOST_USUAL_NOWCASTS} values and groups; no "
        "part of the terms",
    )
    signature: str | None = Field(None, pattern=SIGNATURE_PATTERN)
    areas: Text | None = Field(None, pattern=FILE_PATTERN)
    contact: Text = ""
    attributes: tuple[Attribute, ...] = Field(min_length=1, max_length=64)
    crosses: tuple[Cross, ...] = Field((), max_length=64)

    @model_validator(mode="before")
    @classmethod
    def _read(cls, data: Any) -> Any:
        """Bring the keys of the version to the names of the fields. Keys of another version are refused."""
        if not isinstance(data, dict):
            return data
        version = 3 if data.get("version") == 3 else 2
        for _, problem in foreign_keys(data, version):
            raise ValueError(problem)
        return with_fields(data, version)

    @model_serializer(mode="wrap")
    def _write(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return as_written(dump(self), self.version)

    @field_validator("numbers", "new", "tables")
    @classmethod
    def _order(cls, given: tuple[ReleasedOf, ...] | None) -> tuple[ReleasedOf, ...] | None:
        """However a list is written, its terms are the same."""
        return None if given is None else in_order(given)

    @field_validator("rolling")
    @classmethod
    def _order_windows(cls, given: tuple[Rolling, ...] | None) -> tuple[Rolling, ...] | None:
        if given is None:
            return None
        if len(set(given)) < len(given):
            raise ValueError("the list has a window twice; name it once")
        return tuple(sorted(given, key=lambda window: (window.days, window.every)))

    @field_validator("time_zone", mode="before")
    @classmethod
    def _resolve(cls, given: Any, info: ValidationInfo) -> Any:
        """Look a zone up that is given by its name; a wrong start is a problem of its own."""
        if isinstance(given, str):
            return resolve(given, info.data["start"]) if "start" in info.data else None
        return given

    @field_validator("visitors", mode="before")
    @classmethod
    def _name_units(cls, given: Any, info: ValidationInfo) -> Any:
        """The units that `calendar` stands for."""
        return Visitors.usual(info.data.get("period", DAY)) if given == "calendar" else given

    @model_validator(mode="after")
    def _check(self) -> Self:
        names = tuple(attribute.name for attribute in self.attributes)
        refuse_twice(names, "attributes: the list has", "give each its own name")
        column = "gap" if self.visitors is None else "flags"
        if {"token", column} & set(names):
            raise ValueError(f"attributes: 'token' and {column!r} are columns of every report; choose another name")
        self._check_time()
        self._check_budgets()
        self._check_solution()
        self._check_questions()
        if self.visitors is not None:
            self.visitors.check(self.period)
            if self.horizon > 1:
                what = f"{self.key('horizon')}: {self.horizon}"
                raise ValueError(f"{what} counts by gaps, and visitors by the calendar; leave one out")
        rows = len(self.visits.cells) if self.counts_supports_by_visit else 1
        counters = rows * sum(attribute.k for attribute in self.asked)
        if counters > MAX_COUNTERS:
            key = self.key("horizon")
            raise ValueError(
                f"{key}: {self.horizon} makes {counters} counters a period; at most {MAX_COUNTERS}: "
                f"choose a shorter {key} or fewer values"
            )
        self._check_presence()
        return self

    def _check_presence(self) -> None:
        """What version 3 says about what published numbers tell of who came: noise, or exact numbers."""
        if self.publish_from is not None and self.presence_epsilon is not None:
            raise ValueError("publish_from and presence_epsilon: numbers are exact, or have noise; keep one of both")
        if self.publish_from and self.sends_memo:
            raise ValueError(
                f"publish_from: {self.publish_from} and a memo that is sent: tables of two periods could differ by "
                f"the answer of one device; {self._instead_of_memos}"
            )
        stated = [key for key in LISTS if getattr(self, key) is not None]
        if stated and self.presence_epsilon is None:
            raise ValueError(
                f"{stated[0]}: it says which numbers get noise, and belongs to presence_epsilon; leave it out, or "
                "write presence_epsilon: 1"
            )
        if stated:
            check_released(self.counted, self.released)

    @property
    def _instead_of_memos(self) -> str:
        if any(attribute.placed for attribute in self.attributes):
            return "add geo (and eps_1, if there are other attributes), or write publish_from: 0"
        return "add eps_1, or use presence_epsilon"

    def _check_time(self) -> None:
        if not 1970 <= self.start.year < 2200 or self.start.microsecond:
            raise ValueError(f"start: {self.start.isoformat()}; choose a whole second from 1970 to 2199")
        if not timedelta(0) < self.period <= timedelta(days=366):
            raise ValueError(f"period: {format_duration(self.period)}; choose 1s to 366d")
        if self.grace > MAX_GRACE_PERIODS * self.period:
            raise ValueError(
                f"grace: {format_duration(self.grace)} keeps more than {MAX_GRACE_PERIODS} periods open; choose less"
            )
        if self.time_zone is not None:
            self._check_time_zone(self.time_zone)

    def _check_time_zone(self, zone: TimeZone) -> None:
        calendar = self.calendar
        (first, _), begin = zone.offsets[0], calendar.local(calendar.begin(0))
        if first != int((self.start - DAY).timestamp()):
            raise ValueError("time_zone: its offsets begin not a day before start; write the name of the zone instead")
        if begin != self.start:
            raise ValueError(
                f"start: {self.start.isoformat()} is {calendar.local(micros(self.start)):%H:%M} in {zone.name}, "
                f"and periods of whole days begin with a local day; write {begin.isoformat()}"
            )
        if calendar.last < 1:
            raise ValueError("time_zone: its offsets end before the second period does; write the zone's name instead")

    def _check_budgets(self) -> None:
        self._check_places()
        if all(attribute.placed for attribute in self.attributes):
            for name in ("eps", "eps_inf", "eps_1"):
                if getattr(self, name) is not None:
                    raise ValueError(f"{name}: every attribute has geo or geo_inf, budgets of its own; leave it out")
        elif (self.eps is None) == (self.eps_inf is None):
            raise ValueError(
                "budgets: give eps_inf (with eps_1 unless the memo is sent), or eps for one-shot; one of both"
            )
        most = MAX_EPS * (len(self.attributes) if self.solution == "spl" else 1)
        for name, budget in (("eps", self.eps), ("eps_inf", self.eps_inf)):
            if budget is not None and budget > most:
                raise ValueError(f"{name}: {budget:g} protects nothing; choose {MIN_EPS} to {most:g}")
        if self.eps is not None and self.eps_1 is not None:
            raise ValueError(f"eps_1: {self.eps_1:g} belongs to eps_inf; a one-shot survey has only eps")
        if self.eps_inf is not None and self.eps_1 is not None and self.eps_1 > self.eps_inf - MIN_EPS:
            raise ValueError(
                f"eps_1: {self.eps_1:g} must be below eps_inf = {self.eps_inf:g}, by {MIN_EPS} or more; "
                "leave it out to send the memo"
            )
        if self.one_in > 1 and self.longitudinal:
            raise ValueError(
                f"one_in: {self.one_in} is for fresh noise, and this survey has memos; give eps instead of eps_inf, or "
                "leave one_in out"
            )
        if self.memo_cap is not None and not self.longitudinal:
            raise ValueError(f"memo_cap: {self.memo_cap}, but a one-shot survey memoises nothing; leave it out")

    def _check_places(self) -> None:
        """Places have budgets of their own, by distance, for as many rounds as the others have."""
        others = [attribute for attribute in self.attributes if not attribute.placed]
        for attribute in (attribute for attribute in self.attributes if attribute.placed):
            where = f"attribute {attribute.name!r}"
            if self.solution != "smp":
                raise ValueError(f"{where}: places with geo are asked with solution: smp only; change the solution")
            if self.presence_epsilon is not None:
                raise ValueError(f"{where}: places with geo and presence_epsilon do not go together; leave one out")
            memo, fresh = attribute.geo_inf is not None, attribute.geo is not None
            asked = (self.eps_inf is not None, self.eps is not None or self.eps_1 is not None)
            asked = asked if others else (self.longitudinal, self.attributes[0].geo is not None)
            if (memo, fresh) != asked:
                raise ValueError(
                    f"{where}: geo_inf goes with eps_inf, and geo with eps_1 or eps; give it as many of both as the "
                    "survey's other attributes have"
                )

    def _check_solution(self) -> None:
        if self.solution.startswith("rs") and len(self.attributes) < 2:
            raise ValueError(f"solution: {self.solution} hides one attribute among several; with one attribute use smp")
        for attribute in self.attributes:
            if self.solution == "rs+rfd" and attribute.prior is None:
                raise ValueError(f"attribute {attribute.name!r}: rs+rfd draws fakes from a prior; give one")
            if self.solution != "rs+rfd" and attribute.prior is not None:
                raise ValueError(
                    f"attribute {attribute.name!r}: only rs+rfd uses a prior; leave it out or change solution"
                )
        if not self.solution.startswith("rs") and self.guarantee != "tuple":
            raise ValueError(f"guarantee: {self.guarantee} means something for rs+fd and rs+rfd only; leave it out")

    def _check_questions(self) -> None:
        for attribute in (attribute for attribute in self.attributes if attribute.several is not None):
            check_set(attribute, self.key_of_attributes("several"))
            if self.solution != "smp":
                raise ValueError(f"attribute {attribute.name!r}: sets are asked with solution: smp only; change it")
        for attribute in (attribute for attribute in self.attributes if attribute.mechanism == "threshold"):
            check_thresholds(attribute)
        for cross in self.crosses:
            check_cross(cross, self.attributes)
        refuse_twice(tuple(cross.name for cross in self.crosses), "crosses: the list has", "name each cross once")
        again = {cross.of[::-1] for cross in self.crosses} & {cross.of for cross in self.crosses}
        if again:
            raise ValueError(f"crosses: {' and '.join(min(again))} are crossed twice; keep one order")
        if self.solution != "smp" and self.crosses:
            raise ValueError(
                f"crosses: with {self.solution} a report answers all attributes, and {self.crosses[0].name} would be "
                "one more; use smp, where each device answers one question"
            )
        if self.shares is not None and (self.solution != "smp" or len(self.attributes) < 2):
            raise ValueError("share: all devices answer the same; shares are for smp with several questions")

    @property
    def asked(self) -> tuple[Attribute, ...]:
        """What questions are about: each attribute, then each cross."""
        named = {attribute.name: attribute for attribute in self.attributes}
        crosses = (crossed(cross, *(named[name] for name in cross.of)) for cross in self.crosses)
        return (*map(_alone, self.attributes), *crosses)

    @property
    def shares(self) -> tuple[float, ...] | None:
        """The share of devices that draw each question; None where all are alike, because no share is named."""
        given = [*(attribute.share for attribute in self.attributes), *(cross.share for cross in self.crosses)]
        return None if given.count(None) == len(given) else shares_of(given)

    @property
    def longitudinal(self) -> bool:
        """Whether devices memoise a first round."""
        if all(attribute.placed for attribute in self.attributes):
            return self.attributes[0].geo_inf is not None
        return self.eps is None

    @property
    def sends_memo(self) -> bool:
        """Whether devices send the memo itself, with no noise of its own for each report."""
        return self.longitudinal and self.eps_1 is None and not any(a.geo is not None for a in self.attributes)

    @property
    def has_new_keys(self) -> bool:
        """Whether it has keys that came with version 2 of the terms, or places, whose budgets mean positions since."""
        return self.visitors is not None or any(a.other or a.several or a.placed for a in self.attributes)

    @property
    def nowcasts(self) -> int:
        """Of how many values and groups nowcasts are made: of all but places; 0 if none are."""
        series = sum(attribute.k + len(attribute.groups) for attribute in self.asked if not attribute.placed)
        return 0 if self.nowcast is None and series > MOST_USUAL_NOWCASTS else series

    @property
    def nowcast_season(self) -> int:
        """The season of nowcasts in periods; 1: none."""
        usual = {DAY: (7,), HOUR: (24,)}.get(self.period, ())
        stated = usual if self.nowcast is None or self.nowcast.seasons is None else self.nowcast.seasons
        return next(iter(stated), 1)

    @property
    def declared_terms(self) -> dict[str, Any]:
        """The terms as declared. Texts for people and how results are shown are not terms; defaults are left out."""
        shown: Any = dict.fromkeys(
            ("version", "title", "description", "contact", "forecast", "nowcast", "areas", "signature"), True
        )
        shown["attributes"] = {"__all__": {"groups", "role", "quantiles", "correction", "areas"}}
        shown |= dict.fromkeys(self._usual_lists, True)
        terms = self.model_dump(mode="json", exclude_defaults=True, exclude=shown)
        for attribute in terms["attributes"]:
            if "grid" in attribute:  # the names of its cells follow from it
                del attribute["values"]
        terms["start"] = self.start.astimezone(UTC).isoformat()
        return terms

    @property
    def _usual_lists(self) -> list[str]:
        """The lists that are written as they are without being written: no part of the terms."""
        usual = released(self.counted, self.numbers, None, None, None)
        without = {"numbers": self.counted.names, "new": usual.new, "tables": usual.tables, "rolling": ()}
        return [key for key, value in without.items() if getattr(self, key) == value]

    @property
    def terms_version(self) -> int:
        """The version that the terms carry: 1 where they have no key that came with version 2."""
        if self.version == 3:
            return 3
        return 2 if self.has_new_keys else 1

    def key(self, field: str) -> str:
        """A key of the survey as its version calls it."""
        return written("Survey", field, self.version) or field

    def key_of_attributes(self, field: str) -> str:
        """A key of its attributes as its version calls it."""
        return written("Attribute", field, self.version) or field

    @property
    def threshold(self) -> int:
        """Exact numbers below it are not published; 0 where all are, or where noise protects presence."""
        if self.presence_epsilon is not None:
            return 0
        return (self.publish_from or 0) if self.version == 3 else self.minimum

    @property
    def counts_supports_by_visit(self) -> bool:
        """Whether supports are counted by gap or flags: for answers of the first reports of windows, or for all."""
        if not self.releases_windows:
            return True
        return self.presence_epsilon is not None and any(of != "period" for of in self.released.tables)

    @property
    def hides_answers(self) -> bool:
        """Whether no answers are published: with exact numbers of those who came, tables of memos would tell one."""
        return self.threshold > 0 and self.sends_memo

    @property
    def presence_is_decided(self) -> bool:
        """Whether the survey says if numbers of visitors have noise or are exact. Versions 1 and 2 always do."""
        named = self.publish_from is not None or self.presence_epsilon is not None
        return named or self.version < 3

    @property
    def counted(self) -> Counted:
        """What is counted of visitors."""
        return Counted.of(self.period, self.horizon, self.units)

    @property
    def released(self) -> Released:
        """What is released with noise. Surveys of versions 1 and 2 have the defaults."""
        return released(self.counted, self.numbers, self.new, self.tables, self.rolling)

    @property
    def ahead(self) -> int:
        """How many periods beyond the last closed one reports are accepted: those that grace keeps open, and two more.

        With `clock: wall` workers close periods, so reports of `OUTAGE` are accepted that came while none was running.
        """
        waiting = max(self.grace, OUTAGE) if self.clock == "wall" else self.grace
        return self.calendar.span(waiting) + 2

    @property
    def calendar(self) -> Calendar:
        """When periods begin and end."""
        return calendar_of(self.start, self.start.utcoffset() or timedelta(0), self.period, self.time_zone)

    @property
    def units(self) -> tuple[Unit, ...]:
        """The calendar units in which unique devices are counted; none where they are counted by gaps."""
        return () if self.visitors is None else self.visitors.units

    @property
    def releases_windows(self) -> bool:
        """Whether finals have windows, and not counts by gap or flags, which surveys have that publish everything."""
        return self.presence_epsilon is not None or self.threshold > 0

    @property
    def visits(self) -> Visits:
        """What reports say about their device's earlier ones."""
        return visits_of(self.calendar, self.horizon, self.units)

    def lost_since(self, through: int) -> int:
        """The first period whose lost reports are missing in a window that ends after the period `through`."""
        return 0 if "ever" in self.units else through - self.visits.reach + 1

    def bounds(self, period: int) -> tuple[datetime, datetime]:
        """When a period begins and ends, in local time."""
        return self.calendar.bounds(period)

    def period_of(self, moment: datetime) -> int:
        """The period a moment belongs to; negative before the start."""
        return self.calendar.of(micros(moment))

    def attribute(self, name: str) -> Attribute:
        """An attribute or a cross, by name."""
        return self.asked[self.index(name)]

    def index(self, name: str) -> int:
        """The place of an attribute or of a cross among all questions, by name."""
        names = [*(attribute.name for attribute in self.attributes), *(cross.name for cross in self.crosses)]
        if name not in names:
            raise SurveyError(f"survey {self.id!r} has no attribute {name!r}", f"it has {', '.join(names)}")
        return names.index(name)

    def _repr_html_(self) -> str:
        budgets = {name: getattr(self, name) for name in ("eps_inf", "eps_1", "eps") if getattr(self, name) is not None}
        told = ", ".join(f"{name} {budget:g}" for name, budget in budgets.items())
        rows = [(a.name, a.k, ", ".join(a.values[:6]) + (", ..." if a.k > 6 else ""), a.role) for a in self.asked]
        title = f"{self.title or self.id}: periods of {format_duration(self.period)} from {self.start}; {told}"
        return html_table(title, ("attribute", "values", "", "role"), rows)


def _alone(attribute: Attribute) -> Attribute:
    """An attribute as questions are about it: of sets with paddings, of thresholds with slots."""
    if attribute.mechanism == "threshold":
        return thresholds(attribute)
    return attribute if attribute.several is None else padded(attribute)
