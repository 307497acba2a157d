"""Changes to an experiment: `PATH=VALUE` texts, as on the command line, or Python values by path."""

import re
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral, Real

from bufferscope.base.errors import InputError

Overrides = Sequence[str] | Mapping[str, object]
"""Texts such as `link.bottleneck.rate=2mbit`, or `{"link.bottleneck.rate": "2mbit", "traffic.bulk.ecn": True}`."""

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_PLAIN_WORD = re.compile(r"[0-9]+(\.[0-9]+)?[A-Za-z]+|(?!(true|false|inf|nan)$)[A-Za-z][A-Za-z0-9_+-]*")
"""Texts that are not TOML without quotes, and are therefore read as texts: quantities and names."""
_SPECIAL = re.compile(r'["\\\x00-\x1f\x7f]')
"""Characters that a basic string can contain only as escapes."""


def as_texts(overrides: Overrides) -> list[str]:
    """Overrides as `PATH=VALUE` texts; raises `InputError` for a value that TOML can't express.

    >>> as_texts({"link.line.rate": "2mbit", "traffic.bulk.flows": 4, "link.line.queue": {"qdisc": "codel"}})
    ['link.line.rate=2mbit', 'traffic.bulk.flows=4', 'link.line.queue={qdisc = "codel"}']
    """
    if isinstance(overrides, Mapping):
        return [_override(path, value) for path, value in overrides.items()]
    if isinstance(overrides, str | bytes) or not isinstance(overrides, Iterable):
        raise InputError(f"overrides: found {overrides!r}; allowed: a list of PATH=VALUE strings, or a dict")
    texts = list(overrides)
    for text in texts:
        if not isinstance(text, str):
            raise InputError(f"overrides: found {text!r}; allowed: PATH=VALUE strings, or a dict of values by path")
    return texts


def _override(path: object, value: object) -> str:
    if not isinstance(path, str) or "=" in path:
        raise InputError(f"overrides: found the key {path!r}; allowed: a path such as link.bottleneck.rate")
    if isinstance(value, str) and _PLAIN_WORD.fullmatch(value):
        return f"{path}={value}"
    return f"{path}={_written(value, path)}"


def _written(value: object, path: str) -> str:
    """A value in TOML, on one line."""
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, Real):
        return repr(float(value))
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(key, path)} = {_written(item, path)}" for key, item in value.items()) + "}"
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray | memoryview):
        return "[" + ", ".join(_written(item, path) for item in value) + "]"
    hint = "; leave the key out for its default" if value is None else ""
    raise InputError(f"overrides: {path}: found {value!r:.60}; allowed: text, number, bool, list or dict{hint}")


def _key(key: object, path: str) -> str:
    if not isinstance(key, str):
        raise InputError(f"overrides: {path}: found the key {key!r:.60}; allowed: text")
    return key if _BARE_KEY.fullmatch(key) else _string(key)


def _string(text: str) -> str:
    """A basic string; the loader refuses characters that TOML can't express (lone surrogates)."""
    return '"' + _SPECIAL.sub(lambda found: f"\\u{ord(found[0]):04x}", text) + '"'


def toml(value: object) -> str:
    """A value in TOML, on one line.

    >>> toml({"queue": {"qdisc": "codel"}, "link.line": [1, 2.5, True]})
    '{queue = {qdisc = "codel"}, "link.line" = [1, 2.5, true]}'
    """
    return _written(value, "")
