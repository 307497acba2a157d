"""The templates of pages. Compiling them takes longer than filling them in, so their bytecode is kept."""

from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from typing import Any

import jinja2
from jinja2.bccache import Bucket

from bufferscope.base import kept

PACKAGE = "bufferscope.report"
OPTIONS: Mapping[str, Any] = {"autoescape": True, "trim_blocks": True, "lstrip_blocks": True}


@cache
def environment(package: str = PACKAGE) -> jinja2.Environment:
    """The templates of `package`, which may use those of this package."""
    return jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader(package), jinja2.PackageLoader(PACKAGE)]),
        undefined=jinja2.StrictUndefined,
        bytecode_cache=_Kept(),
        **OPTIONS,
    )


class _Kept(jinja2.BytecodeCache):
    """Bytecode by everything on which it depends; Jinja itself compares Python's version."""

    def load_bytecode(self, bucket: Bucket) -> None:
        """Give a template its bytecode, if that is kept."""
        if content := kept.read(_name(bucket)):
            bucket.bytecode_from_string(content)

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep a template's bytecode."""
        kept.write(_name(bucket), bucket.bytecode_to_string())


def _name(bucket: Bucket) -> str:
    """`key` is a digest of the template's name and path, `checksum` of its source."""
    depends_on = f"{jinja2.__version__} {sorted(OPTIONS.items())} {bucket.key} {bucket.checksum}"
    return f"template-{sha256(depends_on.encode()).hexdigest()[:32]}"
