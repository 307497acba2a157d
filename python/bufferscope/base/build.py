"""Which build of bufferscope this is: processes of the same build give the same runs."""

from functools import cache
from hashlib import sha256
from pathlib import Path

from bufferscope import _core


@cache
def fingerprint() -> str:
    """A digest of the native core and of every Python file of the package: 16 hexadecimal digits."""
    package = Path(__file__).parents[1]
    whole = sha256(Path(_core.__file__).read_bytes())
    for file in sorted(package.rglob("*.py")):
        whole.update(f"\n{file.relative_to(package).as_posix()}\n".encode())
        whole.update(file.read_bytes())
    return whole.hexdigest()[:16]
