"""Captures of packets as runs: `bufferscope inspect`.

The core reads the files and finds the records (`crates/capture`); `reading` calls it, `observing` says as a run what
was captured, `telling` says what a capture can't show, and `connections` is the table of what was found.
"""
