"""Checks the project's prose against scripts/vocabulary.toml, the list of words that it avoids (docs/glossary.md).

    scripts/vocabulary.py [--list FILE] [ROOT]

Prints each finding as `PATH:LINE: found "...": say ...`. Exit status: 0 without findings, 1 with findings, 2 if the
list itself has a mistake.

Fenced blocks of Markdown are not checked: they quote files and output, whose words are checked where they are written.
Of CHANGELOG.md only the unreleased part is checked, because released entries are history.
"""

import argparse
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
FENCE = re.compile(r"^ *(```|~~~).*?^ *\1 *$", re.MULTILINE | re.DOTALL)
SPACE = r"(?:[ \t]+|[ \t]*\n[ \t]*(?:(?:#|//[/!]?)[ \t]+)?)"
"""White space within a paragraph, or within a comment of several lines."""
RELEASE = re.compile(r"^## \[(?!Unreleased\])", re.MULTILINE)


class Mistake(Exception):
    """The list has a mistake."""


@dataclass(frozen=True)
class Pattern:
    """Something to avoid, and what to say instead."""

    pattern: re.Pattern[str]
    say: str
    paths: Sequence[str]
    exceptions: Sequence[re.Pattern[str]]


@dataclass(frozen=True)
class Finding:
    path: str
    line: int
    text: str
    say: str

    def __str__(self) -> str:
        return f'{self.path}:{self.line}: found "{self.text}": say {self.say}'


@dataclass(frozen=True)
class Vocabulary:
    """The list, read and compiled."""

    patterns: Sequence[Pattern]
    skip: Sequence[str]
    exceptions: Sequence[re.Pattern[str]]


def read(file: Path) -> Vocabulary:
    """Read the list; a `Mistake` if a key is missing, unknown or not a regular expression."""
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise Mistake(f"{file}: {error}") from error
    _only(table, {"paths", "skip", "except", "deny"}, str(file))
    paths = table.get("paths", [])
    patterns = []
    for number, entry in enumerate(table.get("deny", []), start=1):
        where = f"{file}: deny {number}"
        _only(entry, {"pattern", "say", "paths", "except"}, where)
        if missing := {"pattern", "say"} - entry.keys():
            raise Mistake(f"{where}: no {' and no '.join(sorted(missing))}")
        exceptions = [_compiled(each, where) for each in entry.get("except", [])]
        patterns.append(
            Pattern(_compiled(entry["pattern"], where), entry["say"], entry.get("paths", paths), exceptions)
        )
    exceptions = [_compiled(each, str(file)) for each in table.get("except", [])]
    return Vocabulary(patterns, table.get("skip", []), exceptions)


def _only(table: Mapping[str, Any], known: set[str], where: str) -> None:
    if unknown := table.keys() - known:
        raise Mistake(f"{where}: unknown {', '.join(sorted(unknown))}; known: {', '.join(sorted(known))}")


def _compiled(pattern: str, where: str) -> re.Pattern[str]:
    """A pattern in which a space matches `SPACE`, so that phrases are found across the end of a line."""
    try:
        return re.compile(re.sub(r" (?![*+?{])", lambda _: SPACE, pattern), re.IGNORECASE | re.MULTILINE)
    except re.error as error:
        raise Mistake(f"{where}: {pattern!r} is not a regular expression: {error}") from error


def check(vocabulary: Vocabulary, root: Path) -> list[Finding]:
    """All findings below `root`, by path and line."""
    skipped = _files(vocabulary.skip, root)
    texts: dict[Path, str] = {}
    findings = []
    for pattern in vocabulary.patterns:
        for path in _files(pattern.paths, root) - skipped:
            if path not in texts:
                texts[path] = _prose(path, vocabulary.exceptions)
            name = path.relative_to(root).as_posix()
            findings += [Finding(name, line, text, pattern.say) for line, text in _found(pattern, texts[path])]
    return sorted(findings, key=lambda finding: (finding.path, finding.line, finding.text))


def _files(globs: Iterable[str], root: Path) -> set[Path]:
    return {path for glob in globs for path in root.glob(glob) if path.is_file()}


def _prose(path: Path, exceptions: Iterable[re.Pattern[str]]) -> str:
    """The text of a file, with what is not checked replaced by as many empty lines."""
    text = path.read_text(encoding="utf-8")
    if path.name == "CHANGELOG.md" and (release := RELEASE.search(text)):
        text = text[: release.start()]
    if path.suffix == ".md":
        text = _without(FENCE, text)
    for exception in exceptions:
        text = _without(exception, text)
    return text


def _without(pattern: re.Pattern[str], text: str) -> str:
    """`text` with each match blanked; characters keep their positions."""
    return pattern.sub(lambda match: re.sub(r"[^\n]", "\0", match[0]), text)


def _found(pattern: Pattern, text: str) -> Iterator[tuple[int, str]]:
    for exception in pattern.exceptions:
        text = _without(exception, text)
    for match in pattern.pattern.finditer(text):
        yield text.count("\n", 0, match.start()) + 1, " ".join(match[0].split())


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Check the project's prose against the list of words that it avoids.")
    parser.add_argument("--list", type=Path, default=HERE / "vocabulary.toml", help="the list of words")
    parser.add_argument("root", type=Path, nargs="?", default=HERE.parent, help="the directory with the files")
    options = parser.parse_args(arguments)
    try:
        findings = check(read(options.list), options.root)
    except Mistake as mistake:
        print(mistake, file=sys.stderr)
        return 2
    for finding in findings:
        print(finding)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
