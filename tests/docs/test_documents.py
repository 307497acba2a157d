"""The documents' statements about the repository are true: paths, links, targets and commands exist."""

import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer.main

from bufferscope.cli.app import app

ROOT = Path(__file__).parents[2]
TRACKED = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
DOCUMENTS = [ROOT / path for path in TRACKED if path.endswith(".md")]
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)

every_document = pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))


def prose(document: Path) -> str:
    return FENCE.sub("", document.read_text())


def commands(document: Path) -> Iterator[list[str]]:
    """Every command of the document's `console` blocks, in words."""
    for language, block in FENCE.findall(document.read_text()):
        if language == "console":
            for line in block.replace("\\\n", " ").splitlines():
                if line.startswith("$ "):
                    yield shlex.split(line[2:], comments=True)


def named_paths(text: str) -> set[str]:
    """Code spans that look like a path of this repository: `crates/sim`, `docs/*.md`, `README.md`."""
    tops = {path.split("/")[0] for path in TRACKED}
    spans = re.findall(r"`([\w.*/-]+)`", text)
    return {span for span in spans if span.split("/")[0] in tops}


@every_document
def test_a_relative_link_leads_to_a_file(document: Path) -> None:
    found = re.findall(r"\]\(([^)\s]+)\)|src(?:set)?=\"([^\"]+)\"", prose(document))
    targets = [markdown or html for markdown, html in found]
    local = [target.split("#")[0] for target in targets if "://" not in target and not target.startswith("#")]
    assert [target for target in local if not (document.parent / target).exists()] == []


@pytest.mark.parametrize("name", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_a_path_that_is_named_exists(name: str) -> None:
    paths = named_paths((ROOT / name).read_text())
    assert paths, "these documents name paths"
    assert [path for path in sorted(paths) if not any(ROOT.glob(path))] == []


def test_the_map_names_every_directory_and_module() -> None:
    """Each top-level entry of the tree, each crate, and each package and module of the Python side."""
    parts = {path.split("/")[0] for path in TRACKED}
    parts |= {"/".join(path.split("/")[:2]) for path in TRACKED if path.startswith("crates/")}
    parts |= {"/".join(path.split("/")[:3]) for path in TRACKED if path.startswith("python/bufferscope/")}
    parts -= {part for part in parts if part.endswith(("__init__.py", "py.typed"))}
    named = named_paths((ROOT / "ARCHITECTURE.md").read_text())
    named |= {path.split("/")[0] for path in named}
    assert parts - named == set()


@every_document
def test_a_make_target_that_is_named_exists(document: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"`make ([a-z-]+)", document.read_text()))
    named |= {words[1] for words in commands(document) if words[0] == "make" and len(words) > 1}
    assert named - targets == set()


@every_document
def test_a_command_that_is_shown_is_understood(document: Path) -> None:
    """Sub-command and options are parsed by the program's own definition; nothing is run."""
    known = typer.main.get_group(app).commands
    for words in commands(document):
        if words[0] == "bufferscope" and words[1] not in ("--help", "--version"):
            known[words[1]].make_context(words[1], words[2:])


def test_documents_are_named_by_author_and_title_and_not_by_internal_numbers() -> None:
    """In everything that a user reads: pages, the catalogue, messages."""
    internal = re.compile(r"\bdocument[ -]?0\d\d\b|\b0\d\d_[0-9a-f]{8}", re.IGNORECASE)
    read = [path for path in TRACKED if path.endswith((".md", ".toml", ".jinja")) or path.startswith("python/")]
    texts = ((path, (ROOT / path).read_text(errors="replace")) for path in read if (ROOT / path).is_file())
    assert [(path, found[0]) for path, text in texts if (found := internal.search(text))] == []


def test_the_citation_file_has_what_the_format_needs_and_the_version_of_the_code() -> None:
    """The required keys of the Citation File Format 1.2.0."""
    citation = (ROOT / "CITATION.cff").read_text()
    keys = dict(re.findall(r"^([\w-]+): *(.*)$", citation, re.MULTILINE))
    assert {"cff-version", "message", "title", "authors", "version"} <= keys.keys()
    assert keys["cff-version"] == "1.2.0"
    assert re.search(r"^authors:\n  - name: \S", citation, re.MULTILINE)
    (version,) = re.findall(r'^version = "(.*)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)
    assert keys["version"] == version
    assert f"version = {{{version}}}" in (ROOT / "docs" / "cite.md").read_text()
