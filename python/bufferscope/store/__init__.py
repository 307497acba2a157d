"""Run directories: how runs are kept on disk.

    OUT/<experiment>/<point>-<engine>-s<seed>-<digest>/
        run.json            what was run, with what, and how it went
        <table>.parquet     one file a table
        capture.pcapng      the packets, if a kernel captured them

Many short runs are kept together instead; `partition` says how.

A directory gets its name only when it is complete; until then it is called `.partial-...`. If a process is killed, the
next one removes the partial directories that it left. A run that is made again replaces the stored one in one step: the
two directories exchange their names.
"""

FORMAT = 6
"""The version of `run.json`; a reader refuses others."""

METADATA = "run.json"
RUNS = "runs.json"
CAPTURE = "capture.pcapng"
PARTIAL = ".partial-"
