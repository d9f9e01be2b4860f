"""Random surveys, as the data their files hold: all of them valid, most of them odd."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

Data = dict[str, Any]

budgets = st.floats(0.01, 10).map(lambda eps: round(eps, 3))
words = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), max_size=20)
guessed = st.sampled_from(["yes", "no", "null", "~", "12:30", "010", "1.0", "-", "a: b", "#x", "{}", "''", "NaN"])
names = guessed | words.map(lambda word: f"é{word}x")  # never empty, no space around it
value_lists = st.lists(names, min_size=2, max_size=9, unique=True)
keys = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True).filter(lambda key: key not in ("token", "gap"))
durations = st.sampled_from(["1s", "15m", "24h", "1d", "7d", "1w", "90s"])


@st.composite
def attributes(draw: st.DrawFn, name: str, *, prior: bool) -> Data:
    if not prior and draw(st.booleans()):
        span = {"first": draw(st.integers(-50, 50)), "last": 60, "step": draw(st.integers(1, 9))}
        return {"name": name, "range": span}
    values = draw(value_lists)
    data: Data = {"name": name, "values": values}
    if prior:
        data["prior"] = dict.fromkeys(values, 1 / len(values))
    if draw(st.booleans()):
        data["groups"] = {draw(names): values[:2], draw(names): values[1:]}
    return data


@st.composite
def surveys(draw: st.DrawFn) -> Data:
    solution = draw(st.sampled_from(["smp", "spl", "rs+fd", "rs+rfd"]))
    few = 2 if solution.startswith("rs") else 1
    chosen = draw(st.lists(keys, min_size=few, max_size=3, unique=True))
    return {
        "id": draw(st.from_regex(r"[a-z0-9][a-z0-9._-]{0,9}", fullmatch=True)),
        "title": draw(words),
        "start": draw(st.sampled_from(["2026-01-01T00:00:00Z", "1999-12-31T23:59:00+05:30"])),
        "period": draw(durations),
        "solution": solution,
        "horizon": draw(st.integers(1, 40)),
        "clock": draw(st.sampled_from(["wall", "source"])),
        "attributes": [draw(attributes(name, prior=solution == "rs+rfd")) for name in chosen],
        **draw(terms_of_privacy()),
    }


@st.composite
def terms_of_privacy(draw: st.DrawFn) -> Data:
    kind = draw(st.sampled_from(["one-shot", "memo only", "two rounds"]))
    eps = draw(budgets)
    if kind == "one-shot":
        return {"eps": eps}
    if kind == "memo only":
        return {"eps_inf": eps, "memo_cap": draw(st.integers(1, 9))}
    return {"eps_inf": round(eps + draw(budgets), 3), "eps_1": eps}
