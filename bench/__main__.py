"""Run benchmarks by name, or all of them, and print what they found."""

import sys
import time
from importlib import import_module
from pkgutil import iter_modules

from rich import box, table
from rich.console import Console

import bench
from bench._measuring import Table
from servers.logs import configure_logs

LOOPS, LOOP_STEPS, LOOP_PAUSE = 6, 1_000_000, 0.4

console = Console(highlight=False, width=None if sys.stdout.isatty() else 100)


def main(names: list[str]) -> int:
    known = [name for _, name, _ in iter_modules(bench.__path__) if name[0] != "_"]
    unknown = [name for name in names if name not in known]
    if unknown:
        console.print(f"no benchmark {unknown[0]!r}; there are {', '.join(known)}")
        return 2
    configure_logs("WARNING")
    chosen = names or known
    for number, name in enumerate(chosen, 1):
        console.print(f"{name}, {number} of {len(chosen)} ...")
        module = import_module(f"bench.{name}")  # one need not have what another is compared with
        before = loop_seconds()
        found = module.run()
        took = [*before, *loop_seconds()]
        found.remarks.append(f"the same loop, before and after, took {min(took):.2f} to {max(took):.2f} CPU seconds")
        show(found)
    return 0


def loop_seconds() -> list[float]:
    """CPU seconds of a loop that is always the same, some times: how fast this machine is, and how evenly."""
    found = []
    for _ in range(LOOPS):
        began = time.process_time()
        sum(i * i for i in range(LOOP_STEPS))
        found.append(time.process_time() - began)
        time.sleep(LOOP_PAUSE)
    return found


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
