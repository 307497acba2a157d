"""Run directories: how runs are kept on disk.

    OUT/<experiment>/<point>-<engine>-s<seed>-<digest>/
        run.json            what was run, with what, and how it went
        <table>.parquet     one file a table

A directory gets its name only when it is whole; until then it is `.partial-...`, and what a killed process left of
those is cleared away by the next. A run that is made again changes names with the one that was there, in one step.
"""

FORMAT = 4
"""The version of `run.json`; a reader refuses others."""

METADATA = "run.json"
PARTIAL = ".partial-"
