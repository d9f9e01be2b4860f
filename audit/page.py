"""An audit as one self-contained page that a data protection officer can read: no scripts, nothing from a network."""

from __future__ import annotations

from html import escape

from audit.report import ATTACKS, Attack, AuditReport, Figure

EXPLAINED: dict[Attack, tuple[str, str]] = {
    "guess": (
        "Guessing a value",
        "Somebody sees one or more reports of a device and guesses its value. Luck is the chance to be right without "
        "seeing anything. The histogram column is the chance of somebody who always names the commonest value: an "
        "attack that is not better than this learns nothing about a person.",
    ),
    "which": (
        "Finding the true attribute",
        "Devices answer one attribute truly and invent the others. Somebody guesses which one is true.",
    ),
    "link": (
        "Recognising a device",
        "Reports carry no identifier. Somebody compares the answers of two periods and guesses which earlier report "
        "came from the same device. Bits say how much two reports of a device have in common; a crowd of n devices "
        "hides log2(n) bits.",
    ),
    "reidentify": (
        "Finding people in another table",
        "Somebody has a table of people with the same attributes, sees a person's answers to several surveys, and "
        "looks for that person's row. The best possible figure is that of somebody who knows the true values.",
    ),
    "epsilon": (
        "Keeping the promise",
        "The loss is the logarithm of how much likelier a report is under one value than under another. The best "
        "column is what the survey promises. The attack column is a loss that the devices were proven to have; it must "
        "not be above the promise.",
    ),
    "forge": (
        "Forging reports",
        "Somebody sends forged reports to move a published share. Figures are for one forged report in a hundred.",
    ),
}
STYLE = """
:root { color-scheme: light dark; --ink: #1d2530; --soft: #5b6673; --line: #d8dde3; --back: #fff; --bar: #2f6db5; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6eaee; --soft: #9aa5b1; --line: #38424d; --back: #14181d; --bar: #6ea8e8; }
}
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--back); max-width: 76rem;
  margin: 2rem auto; padding: 0 1rem; }
h1 { margin-bottom: 0; } .soft { color: var(--soft); } table { border-collapse: collapse; width: 100%; }
th, td { text-align: right; padding: .25rem .6rem; border-bottom: 1px solid var(--line);
  font-variant-numeric: tabular-nums; }
td { white-space: nowrap; } td:nth-child(2) { white-space: normal; min-width: 9rem; }
th:nth-child(-n+2), td:nth-child(-n+2) { text-align: left; } .wide { overflow-x: auto; }
.chart { width: 5.5rem; height: .8rem; background: var(--line); position: relative; }
.chart i { position: absolute; left: 0; top: 0; bottom: 0; background: var(--bar); }
.chart b { position: absolute; top: -.15rem; bottom: -.15rem; width: 2px; background: var(--ink); }
.alarm { border-left: .3rem solid #c0392b; padding-left: .8rem; }
.note { border-left: .3rem solid #d29922; padding-left: .8rem; }
"""


def page(report: AuditReport) -> str:
    """The page.

    >>> empty = AuditReport(survey="s", fingerprint="0", solution="smp", mechanisms={}, crowd=9, attacker="best",
    ...                     alpha=0.01, seed=0, figures=())
    >>> page(empty).startswith("<!doctype html>"), "http" in page(empty)
    (True, False)
    """
    title = f"Audit of {report.survey}"
    parts = [f"<h1>{escape(title)}</h1>", _facts(report), _short(report)]
    for attack in ATTACKS:
        figures = [figure for figure in report.figures if figure.attack == attack]
        if figures:
            heading, text = EXPLAINED[attack]
            parts.append(f'<h2 id="{attack}">{escape(heading)}</h2><p class="soft">{escape(text)}</p>{_table(figures)}')
    parts.append(_terms(report))
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{escape(title)}</title>'
    body = "".join(parts)
    return f'<!doctype html><html lang="en"><head>{head}<style>{STYLE}</style></head><body>{body}</body></html>\n'


def _facts(report: AuditReport) -> str:
    asked = ", ".join(f"{name} ({mechanism})" for name, mechanism in report.mechanisms.items())
    measured = "All figures are computed; nothing was measured."
    if report.devices is not None:
        measured = (
            f"Measured with {report.devices:,} devices of the audit's own in {report.periods} periods (values: "
            f"{report.source}; reports: through {report.path}). No data of real devices was used."
        )
    text = f"{report.solution}: {asked}. One device hides among {report.crowd:,}. {measured}"
    return f'<p class="soft">{escape(text)}</p>'


def _short(report: AuditReport) -> str:
    """What to read if nothing else is read."""
    lines = [f'<p class="alarm"><strong>Defect.</strong> {escape(defect.text)}</p>' for defect in report.defects]
    lines += [f'<p class="alarm"><strong>Above its limit.</strong> {escape(text)}</p>' for text in report.breaches]
    if not lines:
        lines.append("<p>No limit is exceeded, and no measured figure contradicts what is computed.</p>")
    for finding in report.findings:
        if not finding.defect:
            lines.append(f'<p class="note"><strong>{escape(finding.code)}</strong> {escape(finding.text)}</p>')
    return f"<h2>In short</h2>{''.join(lines)}"


def _table(figures: list[Figure]) -> str:
    said = ("target", "the attacker knows", "reports", "luck", "histogram", "attack", "interval", "trials", "best", "")
    head, rows = "".join(f"<th>{heading}</th>" for heading in said), "".join(map(_row, figures))
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def _row(figure: Figure) -> str:
    reports = "all" if figure.reports is None else str(figure.reports)
    trials = "" if figure.trials is None else f"{figure.trials:,.0f}"
    best = shown(figure, figure.best) if figure.exact or figure.best is None else f"about {shown(figure, figure.best)}"
    cells = [figure.target, figure.knows, reports, shown(figure, figure.luck), shown(figure, figure.histogram)]
    cells += [shown(figure, figure.measured), interval(figure), trials, best]
    return "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + f"<td>{_bar(figure)}</td></tr>"


def _bar(figure: Figure) -> str:
    """Chances as a bar from 0 to 100 %, with a mark where luck is."""
    if figure.unit != "chance" or figure.value is None:
        return ""
    label = f"{shown(figure, figure.value)}, luck {shown(figure, figure.luck)}"
    mark = "" if figure.luck is None else f'<b style="left:{100 * figure.luck:.1f}%"></b>'
    bar = f'<i style="width:{100 * figure.value:.1f}%"></i>'
    return f'<div class="chart" role="img" aria-label="{label}">{bar}{mark}</div>'


def _terms(report: AuditReport) -> str:
    text = (
        f"Intervals are exact (Clopper and Pearson) and hold with {1 - report.alpha:.3g} each. Ties are shared. "
        f"Attacker: {report.attacker}. Seed {report.seed}. Fingerprint of the survey: {report.fingerprint}."
    )
    return f'<p class="soft">{escape(text)}</p>'


def shown(figure: Figure, value: float | None) -> str:
    """A figure in its unit."""
    if value is None:
        return ""
    if figure.unit == "chance":
        return f"{100 * value:.2f} %" if value >= 1e-3 or value == 0 else f"{100 * value:.1e} %"
    if figure.unit == "share":
        return f"{100 * value:+.2f} points"
    return f"{value:.3f}" + (" bits" if figure.unit == "bits" else "")


def interval(figure: Figure) -> str:
    """The interval of a measured figure."""
    if figure.low is None:
        return ""
    if figure.high is None:
        return f"at least {shown(figure, figure.low)}"
    return f"{shown(figure, figure.low)} to {shown(figure, figure.high)}"
