"""The stub of the native core agrees with the extension: names, parameters, bases."""

import ast
import subprocess
import sys
from pathlib import Path

from bufferscope import _core

EXTENSION = Path(_core.__file__)
STUB = EXTENSION.with_name("_core.pyi")


def differences(stub: str, place: Path) -> str:
    """What mypy's stubtest finds, with this text as the stub.

    The extension stands alone in `place`: with the package around it, mypy would read that, too.
    """
    (place / EXTENSION.name).symlink_to(EXTENSION)
    (place / STUB.name).write_text(stub)
    # The stub needs no `__all__`: each of its names is public.
    (place / "allowed").write_text(r"_core\.__all__")
    command = [sys.executable, "-m", "mypy.stubtest", "--concise", "--allowlist", "allowed", "_core"]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
    assert not done.stderr
    assert bool(done.returncode) == bool(done.stdout), done
    return done.stdout


def test_the_stub_agrees_with_the_extension(tmp_path: Path) -> None:
    assert differences(STUB.read_text(), tmp_path) == ""
    # What stubtest does not compare.
    assert bases(STUB.read_text()) == {
        name: [base.__name__ for base in kind.__bases__] for name, kind in vars(_core).items() if isinstance(kind, type)
    }


def bases(stub: str) -> dict[str, list[str]]:
    """Every class of a stub with the names of its bases."""
    classes = (node for node in ast.parse(stub).body if isinstance(node, ast.ClassDef))
    return {each.name: [ast.unparse(base) for base in each.bases] or ["object"] for each in classes}


WRONG = [
    ("def schema()", "def scheme()", "_core.schema is not present in stub"),
    ("seed: int,", "number: int,", "_core.simulate is inconsistent"),
    ("    def finish(", "    def end(", "_core.TableWriter.finish is not present in stub"),
]
"""Something in the stub, what may stand there by mistake, and how stubtest reports it."""


def test_differences_are_found(tmp_path: Path) -> None:
    stub = STUB.read_text()
    for right, wrong, _ in WRONG:
        assert right in stub
        stub = stub.replace(right, wrong)
    found = differences(stub, tmp_path)
    assert [words for _, _, words in WRONG if words not in found] == []
