"""What the columns of the tables mean, and in which unit they are: a table of its own, written beside them."""

from collections.abc import Mapping

from protocols.arrays import lazy_arrow as pa

_TEXT, _PERIOD, _TIME, _PEOPLE, _PERCENT = "text", "number of a period", "local time", "people", "percent"
_SHARE, _PROBABILITY = "share, 0 to 1", "probability, 0 to 1"

MEANINGS: Mapping[str, tuple[str, str]] = {
    "first": (_PERIOD, "the first period of the window; the survey's first period is 0"),
    "last": (_PERIOD, "the last period of the window"),
    "begin": (_TIME, "when the window begins; in CSV files with its offset from UTC, in Parquet files in UTC"),
    "end": (_TIME, "when the window ends: it does not belong to it"),
    "kind": (
        _TEXT,
        "period, hour, day, week (from Monday), month, year, or so far; cumulative, ever: since the start",
    ),
    "suppressed": (_TEXT, "why nothing is published: minimum (too few visitors), or difference (with another window)"),
    "visitors": (_PEOPLE, "different devices that reported in the window"),
    "new": (_PEOPLE, "visitors whose last report, if any, is a horizon or more ago; with visitors: who never reported"),
    "returning": (_PEOPLE, "visitors who reported before, within the horizon; with visitors: ever"),
    "unbiased_visitors": (_PEOPLE, "with presence_epsilon: the plain sum of counts with noise, may be negative"),
    "unbiased_new": (_PEOPLE, "the same for new visitors"),
    "unbiased_returning": (_PEOPLE, "the same for returning visitors"),
    "change": (_PERCENT, "change of the people since the previous comparable window"),
    "baseline": (_PERCENT, "change of the people against the baseline"),
    "shortfall": ("reports", "late and lost reports of these periods, at most"),
    "presence_lost": ("true or false", "presence records were lost: devices may be counted twice"),
    "truth": (_PEOPLE, "the real number, which only a simulation knows"),
    "integrity_verdict": (_TEXT, "of one period: consistent, changed, or contradicted by what honest devices report"),
    "integrity_level": (_PROBABILITY, "of a false alarm in the whole life of the survey"),
    "integrity_looks": ("periods", "how many periods were looked at, at most"),
    "integrity_flow_period": (_PERIOD, "the earlier period that reports claim as their last one"),
    "integrity_flow_claimed": ("reports", "that claim it"),
    "integrity_flow_reported": ("reports", "that this earlier period had"),
    "shortest": ("periods", "time since the last visit, at least"),
    "longest": ("periods", "time since the last visit, at most"),
    "attribute": (_TEXT, "what was asked"),
    "role": (_TEXT, "what the attribute is: plain, area, dwell, amount, transition or cross"),
    "counted": (_TEXT, "which value of a visitor counts: that in the period, or the first one in the window"),
    "value": (_TEXT, "the answer, or the name of a group of answers"),
    "size": (_TEXT, "how many values a device has"),
    "mean_size": ("values", "how many values a device has on average, counted up to the last size"),
    "share": (
        _SHARE,
        "of the visitors; of groups of sets a mean number; unbiased: may be negative, need not sum to 1",
    ),
    "consistent": (_SHARE, "the nearest shares that are possible: not negative, and of single values summing to 1"),
    "people": (_PEOPLE, "the share times the visitors"),
    "nowcast": (_SHARE, "the share in a period, estimated with the help of earlier periods"),
    "place": ("number", "place in the ranking, 1 is the busiest"),
    "probability": (_PROBABILITY, "that this place is right"),
    "unit": (_TEXT, "of the mean"),
    "mean": ("see the column unit", "mean dwell time"),
    "quartiles_1": (_TEXT, "a quarter of the visitors stay at most so long"),
    "quartiles_2": (_TEXT, "half of the visitors stay at most so long"),
    "quartiles_3": (_TEXT, "three quarters of the visitors stay at most so long"),
    "statistic": (_TEXT, "mean, sum over all visitors, or a quantile: 0.9 is what nine of ten visitors do not exceed"),
    "number": ("that of the attribute", "the statistic; each visitor counts with the middle of its value"),
    "origin": (_TEXT, "where people came from"),
    "destination": (_TEXT, "where they went"),
    "row_attribute": (_TEXT, "the first attribute of a cross"),
    "row": (_TEXT, "a value of the first attribute of a cross, or one of its groups"),
    "column_attribute": (_TEXT, "the second attribute of a cross"),
    "column": (_TEXT, "a value of the second attribute of a cross, or one of its groups"),
    "group": ("yes or no", "whether row or column is a group of values"),
    "adjusted": (_SHARE, "of a cross: made to agree with both attributes by least squares; unbiased"),
}
_PARTS = {
    "error": "standard error of {}",
    "low": "lower end of the 95 % interval of {}",
    "high": "upper end of the 95 % interval of {}",
}
_COMPARED = {
    "against": (_TEXT, "what {} is compared with, in words"),
    "first": (_PERIOD, "first period of what {} is compared with"),
    "last": (_PERIOD, "last period of what {} is compared with"),
}


def explained(tables: Mapping[str, pa.Table]) -> pa.Table:
    """One row for each column of these tables."""
    rows = [(table, column, *meaning(column)) for table, listed in tables.items() for column in listed.column_names]
    return pa.table(dict(zip(("table", "column", "unit", "meaning"), map(list, zip(*rows, strict=True)), strict=True)))


def meaning(column: str) -> tuple[str, str]:
    """The unit of a column, and what it says.

    >>> meaning("people_low")
    ('people', 'lower end of the 95 % interval of people')
    >>> meaning("low_2")
    ('text', 'lower end of the 95 % interval of quartiles_2')
    >>> meaning("nothing")
    ('', '')
    """
    if column in MEANINGS:
        return MEANINGS[column]
    name, _, part = column.rpartition("_")
    if part in _PARTS and name in MEANINGS:
        return MEANINGS[name][0], _PARTS[part].format(name)
    if part in _COMPARED:
        unit, words = _COMPARED[part]
        return unit, words.format(name)
    return (_TEXT, _PARTS[name].format(f"quartiles_{part}")) if name in _PARTS else ("", "")
