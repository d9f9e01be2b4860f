"""Run benchmarks by name, or all of them, and print what they found."""

from __future__ import annotations

import sys
from importlib import import_module
from pkgutil import iter_modules

from rich import box, table
from rich.console import Console

import bench
from bench.tables import Table

console = Console(highlight=False)


def main(names: list[str]) -> int:
    known = [name for _, name, _ in iter_modules(bench.__path__) if name[0] != "_" and name != "tables"]
    unknown = [name for name in names if name not in known]
    if unknown:
        console.print(f"no benchmark {unknown[0]!r}; there are {', '.join(known)}")
        return 2
    for name in names or known:
        show(import_module(f"bench.{name}").run())  # one need not have what another is compared with
    return 0


def show(found: Table) -> None:
    shown = table.Table(title=found.title, title_justify="left", box=box.SIMPLE)
    for place, column in enumerate(found.columns):
        shown.add_column(column, justify="right" if place else "left")
    for row in found.rows:
        shown.add_row(*row)
    console.print(shown)
    for remark in found.remarks:
        console.print(f"  {remark}")
    for figure in found.missed:
        console.print(f"  [red]missed:[/] {figure}")
    console.print(f"  {'not all' if found.missed else 'all'} figures reached\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
