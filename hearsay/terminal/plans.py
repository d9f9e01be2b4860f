"""A plan on the command line: wanted errors as people write them, and the tables that it shows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from rich.markup import escape
from rich.table import Table

from hearsay.terminal.console import table, words
from protocols.errors import SettingsError, counted
from protocols.planning import PresencePlan, of_100
from protocols.survey import format_duration

if TYPE_CHECKING:
    from protocols.planning import CentralPlan, NoisePlan, Plan, SharesPlan, TargetPlan
    from protocols.privacy import CentralLoss, Loss

LIKELY = 0.9
"""A guess that is right more often than this is shown in red."""
TAKEN_AWAY = "answers of whole closed periods only: none live, and none of weeks or other windows of several periods"


def parse_wanted(text: str) -> dict[str, float]:
    """Wanted standard errors, by question.

    >>> parse_wanted("age*area=0.01, age=0.005")
    {'age*area': 0.01, 'age': 0.005}
    """
    found: dict[str, float] = {}
    for part in words(text):
        name, _, number = (piece.strip() for piece in part.partition("="))
        try:
            found[name] = float(number)
        except ValueError:
            found[name] = 0.0
        if not 1e-6 <= found[name] <= 1:
            raise SettingsError(f"--wanted: {part!r} is not a wanted error", "write it like age*area=0.01,age=0.005")
    return found


def summary_of(drawn: Plan) -> Iterator[str | Table]:
    """What a plan shows first: who can learn what, as chances, and how precise shares will be."""
    title = f" · {escape(drawn.title)}" if drawn.title else ""
    shown = _table("A guess is right in at most so many of 100 cases (luck is 50)", "", "")
    for line in drawn.in_short:
        style = "red" if line.right_guess > LIKELY else "green"
        luck = "" if line.luck == 0.5 else f" (luck: {of_100(line.luck)})"
        shown.add_row(f"[{style}]{of_100(line.right_guess)}[/]", f"{line.seen}: {line.between}{luck}")
    needs = "`central`" if drawn.central else "A figure for readers of results needs `central: {delta: 1e-8}`, which"
    shown.caption = f"{needs} allows {TAKEN_AWAY}."
    yield f"[bold]{drawn.survey}[/]{title}"
    yield shown
    exact = [asked.precision for asked in drawn.attributes if asked.precision is not None]
    if exact:
        worst, most = max(max(one.if_nobody, one.if_half) for one in exact), max(one.devices_needed for one in exact)
        yield (
            f"Shares have a standard error of up to {worst:.2g} with {counted(drawn.devices, 'device')}; for "
            f"{drawn.error:g}, {counted(most, 'device')} must report in a period."
        )


def areas_of(found: Mapping[str, Any], supposed: str) -> Iterator[str | Table]:
    """Which areas of the map will be precise (`plan_areas`), and the proposed merges of those that will not."""
    precise = sum(one["precise"] for one in found["areas"])
    yield (
        f"{precise} of {counted(len(found['areas']), 'area')} of {escape(found['attribute'])} will be precise to "
        f"{of_100(found['wanted'])} % in a period (one standard error){supposed}."
    )
    shown = _table("Neighbours merged until they are precise: write them as groups", "areas", "share", "error")
    for one in found["proposed"]:
        if len(one["areas"]) > 1 or not one["precise"]:
            error = _share(one["relative_error"]) if one["share"] else "nobody"
            shown_error = error if one["precise"] else f"[red]{error}[/]"
            shown.add_row(escape(" + ".join(one["areas"])), _share(one["share"]), shown_error)
    if shown.row_count:
        yield shown


def tables_of(drawn: Plan, with_shares: bool) -> Iterator[str | Table]:
    """Everything that a plan has to show besides, in the order of plan.txt.

    It has a part for each table: its name, its title, its columns, and lines of its caption, of which one after [name]
    is left out if that value is empty, and one after [!name] if it is not. A table without rows is not shown.
    """
    yield f"{drawn.solution}, {drawn.calibration} calibration, {drawn.guarantee.declared}"
    rows, values = _rows(drawn, with_shares), _values(drawn)
    for part in (files("hearsay.terminal") / "plan.txt").read_text("utf-8").split("\n\n"):
        name, title, columns, *caption = part.splitlines()
        found = list(rows[name])
        if found:
            said = (re.fullmatch(r"(?:\[(!?)(\w+)\] )?(.*)", line).groups() for line in caption)  # type: ignore[union-attr]
            told = (text for unless, asked, text in said if not asked or bool(values[asked]) != bool(unless))
            shown = _table(title.format(**values), *map(str.strip, columns.format(**values).split("|")))
            shown.caption = " ".join(told).format(**values) or None
            for row in found:
                shown.add_row(*row)
            yield shown


def _table(title: str, *columns: str) -> Table:
    """A table of figures: the first column is on the left, and so is text without a heading."""
    style = {"title_style": "bold", "caption_justify": "left", "padding": (0, 2, 0, 0)}
    made = table(*columns, left=(columns[0], ""), title=title, **style)
    made.columns[0].no_wrap = columns[0] in ("attribute", "question")
    return made


def _values(drawn: Plan) -> dict[str, Any]:
    """What titles, columns and captions name."""
    promise, crowd = drawn.guarantee, drawn.crowd
    central = None if drawn.central is None else next(iter(drawn.central.values())).constant
    distances = next(iter(promise.places.values()), ())
    return {
        "plan": drawn,
        "devices": counted(drawn.devices, "device"),
        "wanted": f"devices for {drawn.error:g}",
        "turns": promise.per_window,
        "place_counts": " | ".join(f"{t} linked, any" for loss in distances[:1] for t in loss.any),
        "moves": " ".join(_moves(drawn)),
        "drifts": " | ".join(f"{drift:g} points" for drift in drawn.nowcasts),
        "central": central,
        "no_central": central and central.why,
        "way_periods": " | ".join(f"{t} periods" for way in drawn.ways[:1] for t in way.any),
        "crowd_devices": counted(crowd.devices, "device"),
        "gaps": crowd.horizon > 1,
        "flags": crowd.gap_bits and crowd.horizon == 1,
        "ratios": " | ".join(f"{ratio:g} eps_1" for ratio in _ratios(drawn)),
    }


def _rows(drawn: Plan, with_shares: bool) -> dict[str, Iterable[Sequence[str]]]:
    """The rows of each table."""
    exact = [(a.name, a.precision) for a in drawn.attributes if a.precision is not None]
    noised = {} if drawn.presence is None else drawn.presence.attributes
    linked = drawn.crowd.attributes | ({} if drawn.crowd.report is None else {"all in one report": drawn.crowd.report})
    return {
        "mechanisms": _mechanisms(drawn),
        "alternatives": _alternatives(drawn),
        "guarantees": _guarantees(drawn),
        "places": _places(drawn),
        "precision": [
            (name, f"{p.reports:,.0f}", *map(_number, (p.if_nobody, p.if_half, p.at_best)), f"{p.devices_needed:,}")
            for name, p in exact
        ],
        "nowcasts": [(name, *(_number(errors[name]) for errors in drawn.nowcasts.values())) for name, _ in exact],
        "means": [(a.name, _errors(a.means)) for a in drawn.attributes if a.means],
        "sizes": [(a.name, _errors(a.sizes)) for a in drawn.attributes if a.sizes],
        "presence": [
            (name, str(a.largest), f"{a.scale:.3g}", _number(a.if_nobody), _number(a.if_half), f"{a.devices_needed:,}")
            for name, a in noised.items()
        ],
        "series": _series(drawn.presence),
        "presences": _presences(drawn.presence),
        "central": _central(drawn.central or {}, drawn.target),
        "shares": _shares(drawn.shares) if with_shares and drawn.shares is not None else (),
        "ways": _ways(drawn) if all(way.errors for way in drawn.ways) else (),
        "risk": _risk(drawn),
        "links": [
            (name, *_bits(link.answer_bits, link.trait_bits, link.links), _share(link.first_guess), _share(link.luck))
            for name, link in linked.items()
        ],
        "tracking": [
            (name, *(_number(chance) or "not known" for chance in (link.trackability, link.trackability_for_ever)))
            for name, link in linked.items()
        ],
        "wider": _wider(drawn),
    }


def _series(presence: PresencePlan | None) -> Iterator[Sequence[str]]:
    for one in () if presence is None else presence.series:
        name = f"{one.name} (of each value)" if one.name.startswith("supports") else one.name
        yield name, f"{one.cost:,}", f"{one.scale:.3g}", f"{one.half_width:,}", f"{one.relative:.2%}"


def _presences(presence: PresencePlan | None) -> Iterator[Sequence[str]]:
    for time, loss in ({} if presence is None else presence.losses).items():
        numbers = (f"{loss.numbers:.3g}", f"{of_100(loss.numbers_chance)} %")
        answers = (f"{loss.answers:.3g}", f"{of_100(loss.answers_chance)} %")
        yield time, *numbers, *answers


def _mechanisms(drawn: Plan) -> Iterator[Sequence[str]]:
    for a in drawn.attributes:
        budgets = ", ".join(f"{budget:.3g}" for budget in (a.eps_inf, a.eps_1) if budget is not None)
        yield a.name, str(a.values), f"{a.mechanism} {a.detail}".strip(), budgets, _noise(a.first), _noise(a.second)


def _alternatives(drawn: Plan) -> Iterator[Sequence[str]]:
    """All variances, that of the chosen mechanism marked."""
    for a in drawn.attributes:
        marked = (f"[bold]{n} {v:.3g}[/]" if n == a.mechanism else f"{n} {v:.3g}" for n, v in a.alternatives.items())
        yield a.name, f"{a.why}\n[dim]{'  '.join(marked)}[/]"


def _places(drawn: Plan) -> Iterator[Sequence[str]]:
    for a in drawn.attributes:
        for loss in drawn.guarantee.places.get(a.name, ()):
            ever = "adds up" if loss.for_ever is None else _number(loss.for_ever)
            several, kept = map(_loss, loss.any.values()), "" if loss.protected else "not protected"
            yield a.name, f"{loss.metres:,.0f} m", _number(loss.per_report), ever, *several, kept


def _guarantees(drawn: Plan) -> Iterator[Sequence[str]]:
    promise = drawn.guarantee

    def row(seen: str, loss: Loss) -> Sequence[str]:
        return seen, _loss(loss.whole), _loss(loss.attribute), _kind(loss)

    yield row("one report", promise.per_report)
    linked = "linked reports" if promise.per_window is None else "consecutive periods"
    yield ("the value never changes (constant)",)
    for t, figure in promise.constant.items():
        yield row(f"  {t} {linked}", figure)
    yield row("  all reports", promise.for_ever)
    if promise.renaming is not None and promise.cells is not None:
        yield ("histories equal up to renaming (renaming)",)
        yield row(f"  every value it may memoise ({_each(promise.cells)})", promise.renaming)
        if promise.renaming_without_cap is not None:
            yield row("  the same, after an accepted loss", promise.renaming_without_cap)
    yield ("any two histories (any)",)
    if promise.per_window is not None:
        yield row("  any one_in consecutive periods", promise.per_window)
    for t, figure in promise.any.items():
        yield row(f"  {t} {linked}", figure)
    for t, figure in (promise.any_without_cap or {}).items():
        yield row(f"  {t} linked reports, after an accepted loss", figure)
    for name, value in promise.neighbours_per_report.items():
        yield f"neighbours of {name}, one report", "", _number(value), "exact"
    for name, value in promise.neighbours_for_ever.items():
        yield f"neighbours of {name}, constant, all reports", "", _number(value), "exact"


def _moves(drawn: Plan) -> Iterator[str]:
    """How far reports are from places."""
    for a in drawn.attributes:
        if (d := a.displacement) is not None:
            memo = "" if d.memo is None else f" All reports together never come closer than {d.memo:,.0f} m, the memo."
            yield (
                f"A report of {a.name} is {d.mean:,.0f} m from the place on average, up to {d.median:,.0f} m in half "
                f"of the cases, up to {d.most:,.0f} m in 95 of 100.{memo}"
            )


def _each(cells: dict[str, int]) -> str:
    least, most = min(cells.values()), max(cells.values())
    counts = f"{most}" if least == most else f"{least} to {most}"
    return counts if len(cells) == 1 else f"{counts} each"


def _central(spans: Mapping[str, CentralPlan], wanted: TargetPlan | None) -> Iterator[Sequence[str]]:
    for span, found in spans.items():
        yield f"a {span}", *map(_central_loss, (found.constant, found.if_forged, found.any))
    if wanted is not None:
        kept = "no eps_1 keeps it"
        if wanted.eps_1 is not None and wanted.figure is not None:
            kept = f"eps_1 {wanted.eps_1:g}, which gives {_central_loss(wanted.figure)}"
        yield f"at most {wanted.target:g} in {format_duration(wanted.per)}", kept


def _central_loss(loss: CentralLoss | None) -> str:
    """The figure, and the attribute that is worst hidden if there are several."""
    if loss is None:
        return "not computed"
    worst = max(loss.by_attribute, key=loss.by_attribute.__getitem__, default="")
    named = f" ({worst})" if len(loss.by_attribute) > 1 else ""
    return "none" if loss.epsilon is None else f"{loss.epsilon:g}{named}"


def _shares(shares: SharesPlan) -> Iterator[Sequence[str]]:
    """How exact single values are beside the even one, and the shares for the wanted errors."""
    for one in shares.questions:
        error = f"[red]{one.error:.4g}[/]" if one.error > one.even else f"{one.error:.4g}"
        figures = [f"{one.wanted:g}", f"{one.proposed:.3f}", f"{one.proposed_error:.4g}"]
        yield one.name, f"{one.share:.3g}", f"{one.even:.4g}", error, *figures


def _ways(drawn: Plan) -> Iterator[Sequence[str]]:
    for way in drawn.ways:
        terms = f"[bold]{way.terms}[/]" if way.declared else way.terms
        errors = [_number(max(found.values())) for found in (way.errors, way.nowcasts)]
        *_, last = way.any.values()
        yield terms, *(_loss(loss.whole) for loss in way.any.values()), _kind(last), *errors


def _risk(drawn: Plan) -> Iterator[Sequence[str]]:
    for a in drawn.attributes:
        people = "" if a.forged_report is None else f"{a.forged_report:,.1f} people"
        yield a.name, _number(a.value_guess), _number(a.luck), people
    if drawn.attribute_guess is not None:
        worst = drawn.attribute_guess_if_same
        seen = _number(drawn.attribute_guess) + (f" to {_number(worst)}" if worst is not None else "")
        yield "which attribute is true", seen, _number(1 / len(drawn.attributes)), ""


def _ratios(drawn: Plan) -> list[float]:
    return sorted({point.ratio for points in drawn.crowd.wider.values() for point in points})


def _wider(drawn: Plan) -> Iterator[Sequence[str]]:
    for name, points in drawn.crowd.wider.items():
        if points:
            cells = {point.ratio: f"{point.bits:.2f}, {_share(point.first_guess)}" for point in points}
            yield name, *(cells.get(ratio, "") for ratio in _ratios(drawn))


def _bits(answer: float, trait: float, links: bool) -> Sequence[str]:
    whole = f"{answer + trait:.2f}"
    return f"{answer:.2f}", f"{trait:.2f}", f"[red]{whole}[/]" if links else whole


def _errors(found: Mapping[Any, float]) -> str:
    return "  ".join(f"{what}: {_number(error)}" for what, error in found.items())


def _share(value: float) -> str:
    return f"{100 * value:.2g} %"


def _noise(noise: NoisePlan | None) -> str:
    if noise is None:
        return ""
    return "matrix" if noise.p is None or noise.q is None else f"{noise.p:.3g}, {noise.q:.3g}"


def _loss(value: float | None) -> str:
    return "no bound" if value is None else _number(value)


def _kind(loss: Loss) -> str:
    if loss.whole is None:
        return ""
    return "exact" if loss.exact else "at most"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"
