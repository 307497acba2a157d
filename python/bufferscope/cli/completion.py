"""What the shell offers when the Tab key is pressed."""

from collections.abc import Iterator
from pathlib import Path


def complete_experiment(incomplete: str) -> Iterator[str]:
    """Names of the catalogue, and TOML files and directories that begin with what is there."""
    from bufferscope.experiment import catalogue

    yield from (name for name in catalogue() if name.startswith(incomplete))
    for path in sorted(Path().glob(f"{incomplete}*")):
        if path.is_dir():
            yield f"{path}/"
        elif path.suffix == ".toml":
            yield str(path)
