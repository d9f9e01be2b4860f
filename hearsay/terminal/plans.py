"""A plan on the command line: wanted errors as people write them, and the tables that it shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table

from protocols.errors import SettingsError, counted
from protocols.planning import of_100
from protocols.survey import format_duration

if TYPE_CHECKING:
    from protocols.planning import CentralPlan, NoisePlan, Plan, PresencePlan, SharesPlan, TargetPlan
    from protocols.privacy import CentralLoss, Loss

RELATIONS = (
    "Two histories are equal up to renaming if they change and return at the same times, and only what is memoised (a "
    "value, its hash or its bucket) differs. A memo_cap above 1 does not lower the figures for any two histories. No "
    "cap holds once a loss of the memo store was accepted (`hearsay memo accept-loss`)."
)

LIKELY = 0.9
"""A guess that is right more often than this is shown in red."""
TAKEN_AWAY = "answers of whole closed periods only: none live, and none of weeks or other windows of several periods"

TURNS = (
    "A device answers in one of one_in periods. Figures are for all reports of so many consecutive periods. Reports of "
    "periods that lie further apart may all be answers, and each answer costs as much as one report."
)


def parse_wanted(text: str) -> dict[str, float]:
    """Wanted standard errors, by question.

    >>> parse_wanted("age*area=0.01, age=0.005")
    {'age*area': 0.01, 'age': 0.005}
    """
    found: dict[str, float] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
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
    table = _table("A guess is right in at most so many of 100 cases (luck is 50)", "", "")
    for line in drawn.in_short:
        style = "red" if line.right_guess > LIKELY else "green"
        luck = "" if line.luck == 0.5 else f" (luck: {of_100(line.luck)})"
        table.add_row(f"[{style}]{of_100(line.right_guess)}[/]", f"{line.seen}: {line.between}{luck}")
    if drawn.central is None:
        table.caption = f"A figure for readers of results needs `central: {{delta: 1e-8}}`, which allows {TAKEN_AWAY}."
    else:
        table.caption = f"`central` allows {TAKEN_AWAY}."
    yield f"[bold]{drawn.survey}[/]{title}"
    yield table
    exact = [asked.precision for asked in drawn.attributes if asked.precision is not None]
    if exact:
        worst, most = max(max(one.if_nobody, one.if_half) for one in exact), max(one.devices_needed for one in exact)
        yield (
            f"Shares have a standard error of up to {worst:.2g} with {counted(drawn.devices, 'device')}; for "
            f"{drawn.error:g}, {counted(most, 'device')} must report in a period."
        )


def tables_of(drawn: Plan, with_shares: bool) -> Iterator[str | Table]:
    """Everything that a plan has to show besides, in order."""
    yield f"{drawn.solution}, {drawn.calibration} calibration, {drawn.guarantee.declared}"
    yield _mechanisms(drawn)
    yield _alternatives(drawn)
    yield _guarantees(drawn)
    if drawn.guarantee.places:
        yield _places(drawn)
    if any(a.precision for a in drawn.attributes):
        yield _precision(drawn)
        yield _nowcasts(drawn)
    if any(a.sizes for a in drawn.attributes):
        yield _sizes(drawn)
    if drawn.presence is not None:
        yield _presence(drawn, drawn.presence)
    if drawn.central is not None:
        yield _central(drawn.central, drawn.target)
    if with_shares and drawn.shares is not None:
        yield _shares(drawn.shares, drawn.devices)
    if all(way.errors for way in drawn.ways):
        yield _ways(drawn)
    yield _risk(drawn)
    yield _links(drawn)
    yield _tracking(drawn)
    if any(drawn.crowd.wider.values()):
        yield _wider(drawn)


def _table(title: str, *columns: str, caption: str | None = None) -> Table:
    """A table of figures: the first column is on the left, and so is text without a heading."""
    table = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        caption=caption,
        caption_justify="left",
        box=None,
        pad_edge=False,
        padding=(0, 2, 0, 0),
    )
    for place, column in enumerate(columns):
        unbroken = place == 0 and column in ("attribute", "question")
        table.add_column(column, justify="right" if place and column else "left", no_wrap=unbroken)
    return table


def _mechanisms(drawn: Plan) -> Table:
    table = _table("Mechanisms", "attribute", "values", "mechanism", "budgets", "p1, q1", "p2, q2")
    for a in drawn.attributes:
        budgets = ", ".join(f"{budget:.3g}" for budget in (a.eps_inf, a.eps_1) if budget is not None)
        row = [str(a.values), f"{a.mechanism} {a.detail}".strip(), budgets, _noise(a.first), _noise(a.second)]
        table.add_row(a.name, *row)
    return table


def _alternatives(drawn: Plan) -> Table:
    table = _table("Why: variance of one report for a value that no device has", "attribute", "")
    for a in drawn.attributes:
        marked = (f"[bold]{n} {v:.3g}[/]" if n == a.mechanism else f"{n} {v:.3g}" for n, v in a.alternatives.items())
        table.add_row(a.name, f"{a.why}\n[dim]{'  '.join(marked)}[/]")
    return table


def _guarantees(drawn: Plan) -> Table:
    promise = drawn.guarantee
    title = "Guarantees: ln of the largest likelihood ratio between two histories"
    caption = RELATIONS if promise.per_window is None else TURNS
    table = _table(title, "an observer sees", "whole tuples", "one attribute", "", caption=caption)

    def row(seen: str, loss: Loss) -> None:
        table.add_row(seen, _loss(loss.whole), _loss(loss.attribute), _kind(loss))

    row("one report", promise.per_report)
    linked = "linked reports" if promise.per_window is None else "consecutive periods"
    table.add_row("the value never changes (constant)")
    for t, figure in promise.constant.items():
        row(f"  {t} {linked}", figure)
    row("  all reports", promise.for_ever)
    if promise.renaming is not None and promise.cells is not None:
        table.add_row("histories equal up to renaming (renaming)")
        row(f"  every value it may memoise ({_each(promise.cells)})", promise.renaming)
        if promise.renaming_without_cap is not None:
            row("  the same, after an accepted loss", promise.renaming_without_cap)
    table.add_row("any two histories (any)")
    if promise.per_window is not None:
        row("  any one_in consecutive periods", promise.per_window)
    for t, figure in promise.any.items():
        row(f"  {t} {linked}", figure)
    for t, figure in (promise.any_without_cap or {}).items():
        row(f"  {t} linked reports, after an accepted loss", figure)
    for name, value in promise.neighbours_per_report.items():
        table.add_row(f"neighbours of {name}, one report", "", _number(value), "exact")
    for name, value in promise.neighbours_for_ever.items():
        table.add_row(f"neighbours of {name}, constant, all reports", "", _number(value), "exact")
    return table


def _places(drawn: Plan) -> Table:
    """What reports tell about two positions, in metres."""
    promise = drawn.guarantee
    counts = list(next(iter(promise.places.values()))[0].any)
    title = "Guarantees by distance: ln of the largest likelihood ratio between two positions"
    columns = ["apart", "one report", "all reports, constant", *(f"{t} linked, any" for t in counts)]
    table = _table(title, "attribute", *columns, "")
    moves = []
    for a in drawn.attributes:
        for loss in promise.places.get(a.name, ()):
            ever = "adds up" if loss.for_ever is None else _number(loss.for_ever)
            several = [_loss(figure) for figure in loss.any.values()]
            kept = "" if loss.protected else "not protected"
            table.add_row(a.name, f"{loss.metres:,.0f} m", _number(loss.per_report), ever, *several, kept)
        if a.displacement is not None:
            d = a.displacement
            memo = "" if d.memo is None else f" All reports together never come closer than {d.memo:,.0f} m, the memo."
            moves.append(
                f"A report of {a.name} is {d.mean:,.0f} m from the place on average, up to {d.median:,.0f} m in half "
                f"of the cases, up to {d.most:,.0f} m in 95 of 100.{memo}"
            )
    table.caption = f"{' '.join(moves)} Histories equal up to renaming lose the constant figure for each place visited."
    return table


def _each(cells: dict[str, int]) -> str:
    least, most = min(cells.values()), max(cells.values())
    counts = f"{most}" if least == most else f"{least} to {most}"
    return counts if len(cells) == 1 else f"{counts} each"


def _precision(drawn: Plan) -> Table:
    title = f"Standard error of a share, {counted(drawn.devices, 'device')} per period"
    wanted = f"devices for {drawn.error:g}"
    table = _table(title, "attribute", "reports", "no device has it", "half have it", "best over all periods", wanted)
    for a in drawn.attributes:
        p = a.precision
        if p is None:
            continue
        errors = map(_number, (p.if_nobody, p.if_half, p.at_best))
        table.add_row(a.name, f"{p.reports:,.0f}", *errors, f"{p.devices_needed:,}")
    return table


def _sizes(drawn: Plan) -> Table:
    title = f"Standard error of a value that no device has, by `several`, {counted(drawn.devices, 'device')} per period"
    table = _table(title, "attribute", "several: error")
    for a in (a for a in drawn.attributes if a.sizes):
        table.add_row(a.name, "  ".join(f"{several}: {_number(error)}" for several, error in a.sizes.items()))
    table.caption = "Shares are too low where sets have more values than `several`: take the largest size you expect."
    return table


def _nowcasts(drawn: Plan) -> Table:
    title = "Standard error of a nowcast, by how far shares move in a period"
    table = _table(title, "attribute", *(f"{drift:g} points" for drift in drawn.nowcasts))
    for name in (a.name for a in drawn.attributes if a.precision):
        table.add_row(name, *(_number(errors[name]) for errors in drawn.nowcasts.values()))
    table.caption = "For a value that no device has, after some tens of periods. To learn a season takes more."
    return table


def _presence(drawn: Plan, presence: PresencePlan) -> Table:
    title = f"The same with presence_epsilon = {presence.epsilon:g}, which protects a device's presence in a period"
    wanted = f"devices for {drawn.error:g}"
    table = _table(title, "attribute", "most supports", "noise scale", "no device has it", "half have it", wanted)
    for name, a in presence.attributes.items():
        errors = [_number(a.if_nobody), _number(a.if_half), f"{a.devices_needed:,}"]
        table.add_row(name, str(a.largest), f"{a.scale:.3g}", *errors)
    table.caption = (
        f"{presence.supports_epsilon:.3g} of the budget is for the supports of each value, "
        f"{presence.reports_epsilon:.3g} for reports by gap (noise of scale {presence.scale:.3g}). The visitors of a "
        f"period have a standard error of {presence.visitors:.3g}. Longer windows have no answers, and nothing is "
        "provisional."
    )
    return table


def _central(spans: Mapping[str, CentralPlan], wanted: TargetPlan | None) -> Table:
    first = next(iter(spans.values())).constant
    title = f"Readers of results (not of reports), delta {first.delta:g}, {first.crowd:,} honest answers or more"
    table = _table(title, "results of", "values constant", "if 10 % are forged", "any values")
    for span, found in spans.items():
        table.add_row(f"a {span}", *map(_central_loss, (found.constant, found.if_forged, found.any)))
    if wanted is not None:
        kept = "no eps_1 keeps it"
        if wanted.eps_1 is not None and wanted.figure is not None:
            kept = f"eps_1 {wanted.eps_1:g}, which gives {_central_loss(wanted.figure)}"
        table.add_row(f"at most {wanted.target:g} in {format_duration(wanted.per)}", kept)
    table.caption = "Not covered: that a device reported, and when." + (
        f" No figure: {first.why}." if first.why else ""
    )
    return table


def _central_loss(loss: CentralLoss) -> str:
    """The figure, and the attribute that is worst hidden if there are several."""
    worst = max(loss.by_attribute, key=loss.by_attribute.__getitem__, default="")
    named = f" ({worst})" if len(loss.by_attribute) > 1 else ""
    return "none" if loss.epsilon is None else f"{loss.epsilon:g}{named}"


def _shares(shares: SharesPlan, devices: int) -> Table:
    """How exact single values are beside the even one, and the shares for the wanted errors."""
    title = f"Shares of questions: standard error of a value if all are alike, {counted(devices, 'device')} per period"
    caption = (
        f"The proposed shares reach all wanted errors with the fewest devices: {shares.devices_needed:,} in a period. "
        "Wanted errors are those of --wanted, otherwise that of --error."
    )
    columns = ("share", "even value", "error", "wanted", "proposed share", "error then")
    table = _table(title, "question", *columns, caption=caption)
    for one in shares.questions:
        error = f"[red]{one.error:.4g}[/]" if one.error > one.even else f"{one.error:.4g}"
        figures = [f"{one.wanted:g}", f"{one.proposed:.3f}", f"{one.proposed_error:.4g}"]
        table.add_row(one.name, f"{one.share:.3g}", f"{one.even:.4g}", error, *figures)
    return table


def _ways(drawn: Plan) -> Table:
    title = "Memos, or fresh noise in one of several periods: loss between any two histories, and error"
    periods = list(drawn.ways[0].any)
    columns = [*(f"{t} periods" for t in periods), "", "largest standard error", "nowcast at 0.2"]
    table = _table(title, "asked with", *columns)
    for way in drawn.ways:
        terms = f"[bold]{way.terms}[/]" if way.declared else way.terms
        losses = [_loss(loss.whole) for loss in way.any.values()]
        errors = [_number(max(found.values())) for found in (way.errors, way.nowcasts)]
        table.add_row(terms, *losses, _kind(way.any[periods[-1]]), *errors)
    table.caption = (
        "All reports of so many consecutive periods, linked. While a value stays, memos lose less than this (constant, "
        "above); where it changes often and reports can be linked, fresh noise in one of several periods does. The "
        "error is that of a share in one period, for a value that no device has; beside it that of its nowcast, if "
        "shares move by 0.2 points in a period."
    )
    return table


def _risk(drawn: Plan) -> Table:
    table = _table(
        "Risk from one report", "attribute", "best guess of the value", "by chance", "forged report counts as"
    )
    for a in drawn.attributes:
        people = "" if a.forged_report is None else f"{a.forged_report:,.1f} people"
        table.add_row(a.name, _number(a.value_guess), _number(a.luck), people)
    if drawn.attribute_guess is not None:
        worst = drawn.attribute_guess_if_same
        seen = _number(drawn.attribute_guess) + (f" to {_number(worst)}" if worst is not None else "")
        table.add_row("which attribute is true", seen, _number(1 / len(drawn.attributes)), "")
    return table


def _links(drawn: Plan) -> Table:
    crowd = drawn.crowd
    title = (
        f"What links two reports of a device, in bits: {counted(crowd.devices, 'device')} "
        f"({crowd.crowd_bits:.1f} bits) hide {crowd.hidden_bits:.2g}"
    )
    table = _table(title, "attribute", "answers", "lifelong traits", "together", "right first guess", "by chance")
    whole = {} if crowd.report is None else {"all in one report": crowd.report}
    for name, link in (crowd.attributes | whole).items():
        bits = link.answer_bits + link.trait_bits
        together = f"[red]{bits:.2f}[/]" if link.links else f"{bits:.2f}"
        shown = [f"{link.answer_bits:.2f}", f"{link.trait_bits:.2f}", together]
        table.add_row(name, *shown, _share(link.first_guess), _share(link.luck))
    if crowd.horizon > 1:
        table.caption = (
            f"A gap tells up to {crowd.gap_bits:.2g} bits more: one below {crowd.horizon} names the period of the "
            "previous report, and only that period's reports are candidates."
        )
    if crowd.visit_bits:
        flags, gaps = crowd.visit_bits["flags"], crowd.visit_bits["gaps"]
        table.caption = (
            f"Flags of calendar units tell {flags[0]:.2g} bits more on average (the rarest {flags[1]:.2g}); gaps of "
            f"up to 31 periods would tell {gaps[0]:.2g} ({gaps[1]:.2g}). The previous report is one of "
            f"{crowd.candidates:,} or more."
        )
    return table


def _tracking(drawn: Plan) -> Table:
    title = "Trackability: ln of how much likelier reports can be if one device sent them than if two of one value did"
    table = _table(title, "attribute", "two reports", "all reports")
    whole = {} if drawn.crowd.report is None else {"all in one report": drawn.crowd.report}
    for name, link in (drawn.crowd.attributes | whole).items():
        known = (link.trackability, link.trackability_for_ever)
        table.add_row(name, *("not known" if figure is None else _number(figure) for figure in known))
    return table


def _wider(drawn: Plan) -> Table:
    wider = {name: points for name, points in drawn.crowd.wider.items() if points}
    ratios = sorted({point.ratio for points in wider.values() for point in points})
    title = "The same if eps_inf were a multiple of eps_1: bits, right first guess"
    table = _table(title, "attribute", *(f"{ratio:g} eps_1" for ratio in ratios))
    for name, points in wider.items():
        cells = {point.ratio: f"{point.bits:.2f}, {_share(point.first_guess)}" for point in points}
        table.add_row(name, *(cells.get(ratio, "") for ratio in ratios))
    return table


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
