"""What other programs measured, read from their own files and stored as runs.

`kinds` recognises a format by its content; each format has a file of its own, whose function returns a `Reading`: the
traffic, the probes and the samples of flows, in the program's own times. `conversion` makes a run of it. Files are
anybody's: a wrong one ends in an `InputError` that says what was found.
"""
