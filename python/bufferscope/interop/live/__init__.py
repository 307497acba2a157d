"""Live measurements: run one, store it like any run, and put together again what it observed.

`records` makes tables of what was observed, `rebuilding` is its inverse, and `measuring` does the whole: from a host's
name to a stored run.
"""
