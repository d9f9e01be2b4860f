"""Random surveys, as the data their files hold: all of them valid, most of them odd."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

Data = dict[str, Any]

budgets = st.floats(0.001, 20).map(lambda eps: round(eps, 4)).filter(lambda eps: eps >= 0.001)
words = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), max_size=20)
names = words.map(lambda word: f"a{word}b")  # not empty, no space around it
odd_names = st.sampled_from(["yes", "no", "null", "~", "12:30", "010", "1.0", "-", "a: b", "#x", "é", "e\u0301", "{}", "''"])
keys = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True).filter(lambda key: key not in ("token", "gap"))
durations = st.sampled_from(["1s", "15m", "24h", "1d", "7d", "1w", "90s"])


@st.composite
def attributes(draw: st.DrawFn, name: str, prior: bool) -> Data:
    data: Data = {"name": name}
    if draw(st.booleans()):
        data["range"] = {"first": draw(st.integers(-50, 50)), "last": 60, "step": draw(st.integers(1, 9))}
    else:
        data["values"] = draw(st.lists(names | odd_names, min_size=2, max_size=9, unique_by=lambda n: n.casefold()))
        data["values"] = [value for value in data["values"] if value not in ("é", "e\u0301")] + ["x", "y"]
        if draw(st.booleans()):
            data["groups"] = {draw(names): data["values"][:2]}
        if prior:
            count = len(data["values"])
            data["prior"] = dict.fromkeys(data["values"], 1 / count)
    return data


@st.composite
def surveys(draw: st.DrawFn) -> Data:
    solution = draw(st.sampled_from(["smp", "spl", "rs+fd", "rs+rfd"]))
    chosen = draw(st.lists(keys, min_size=2 if solution.startswith("rs") else 1, max_size=4, unique=True))
    data: Data = {
        "id": draw(st.from_regex(r"[a-z0-9][a-z0-9._-]{0,9}", fullmatch=True)),
        "title": draw(words),
        "start": draw(st.sampled_from(["2026-01-01T00:00:00Z", "1999-12-31T23:59:00+05:30"])),
        "period": draw(durations),
        "solution": solution,
        "attributes": [draw(attributes(name, solution == "rs+rfd")) for name in chosen],
        "horizon": draw(st.integers(1, 40)),
        "clock": draw(st.sampled_from(["wall", "source"])),
    }
    if solution == "rs+rfd":
        for attribute in data["attributes"]:
            attribute.pop("range", None)
            attribute.setdefault("values", ["p", "q", "r"])
            attribute["prior"] = dict.fromkeys(attribute["values"], 1 / len(attribute["values"]))
    kind = draw(st.sampled_from(["one-shot", "memo only", "two rounds"]))
    first = draw(budgets)
    data |= {"eps": first} if kind == "one-shot" else {"eps_inf": first}
    if kind == "two rounds":
        second = draw(budgets.filter(lambda eps: eps + 0.001 < 20))
        data |= {"eps_inf": max(first, round(second + 0.0011, 4)), "eps_1": min(second, max(0.001, first - 0.0011))}
        data["eps_1"] = second if data["eps_inf"] > first else data["eps_1"]
    return data
