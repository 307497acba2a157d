"""Whether an argument of a command names stored runs, or an experiment."""

from os.path import dirname, isdir, isfile, join

from bufferscope.store import RUNS


def is_stored(what: str) -> bool:
    """Whether this is a directory, or a run of a directory of runs that are stored together."""
    # Path.is_dir and Path.is_file raise an exception if the name is too long.
    return isdir(what) or isfile(join(dirname(what), RUNS))  # noqa: PTH112,PTH113,PTH118,PTH120
