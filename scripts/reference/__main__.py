"""Writes the pages of docs/reference, which are made from the code; --check says which are out of date."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import catalogue
import command_line
import experiment_file
import explorer_disciplines
import metrics_list
import python_api
import queues

DIRECTORY = Path(__file__).parents[2] / "docs" / "reference"
NOTICE = "<!-- Made from the code by `make reference`; edit that, not this. -->\n\n"
PAGES: Mapping[str, Callable[[], str]] = {
    "catalogue.md": catalogue.page,
    "command-line.md": command_line.page,
    "experiment-file.md": experiment_file.page,
    "metrics.md": metrics_list.page,
    "python-api.md": python_api.page,
    "queues.md": queues.page,
}


def main() -> int:
    """Write all pages, or compare them with the existing ones."""
    pages = {DIRECTORY / name: NOTICE + page() for name, page in PAGES.items()}
    pages[explorer_disciplines.PATH] = explorer_disciplines.module()
    if "--check" in sys.argv[1:]:
        outdated = [path.name for path, text in pages.items() if not path.exists() or path.read_text() != text]
        if outdated:
            print(f"docs/reference: out of date: {', '.join(outdated)}; `make reference` writes them", file=sys.stderr)
        return len(outdated)
    DIRECTORY.mkdir(exist_ok=True)
    for path, text in pages.items():
        path.write_text(text)
    return 0


sys.exit(main())
