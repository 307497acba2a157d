"""Which build of bufferscope this is: processes of the same build give the same runs."""

from functools import cache
from hashlib import sha256
from pathlib import Path

from bufferscope import _core
from bufferscope.base.commit import PACKAGE


@cache
def fingerprint() -> str:
    """A digest of the native core and of every Python file of the package: 16 hexadecimal digits."""
    whole = sha256(Path(_core.__file__).read_bytes())
    for file in sorted(PACKAGE.rglob("*.py")):
        whole.update(f"\n{file.relative_to(PACKAGE).as_posix()}\n".encode())
        whole.update(file.read_bytes())
    return whole.hexdigest()[:16]
