"""Benchmarks: `python -m bench [names]`, or `make bench`.

Each module here that has a function `run() -> Table` is a benchmark and has its name. It measures, compares with
something in the same run where there is something to compare with, and says which of its figures were missed. At its
top it says what it decides, and which change would be a reason to run it.
"""
