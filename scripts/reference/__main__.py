"""Writes what is made from the code: modules and docs/reference. --check says what is out of date."""

import sys
from collections.abc import Iterator
from pathlib import Path

import explorer_disciplines
import scenario_types

ROOT = Path(__file__).parents[2]


def made() -> Iterator[tuple[Path, str]]:
    """Each file with its text."""
    yield scenario_types.PATH, scenario_types.module()
    yield explorer_disciplines.PATH, explorer_disciplines.module()
    from reference_pages import NOTICE, PAGES  # not before: it loads the module of the types

    for name, page in PAGES.items():
        yield ROOT / "docs" / "reference" / name, NOTICE + page()


def main() -> int:
    """Write all files, or compare them with the existing ones."""
    is_check, outdated = "--check" in sys.argv[1:], 0
    for path, text in made():
        if path.exists() and path.read_text() == text:
            continue
        outdated += 1
        if is_check:
            print(f"{path.relative_to(ROOT)}: out of date; `make reference` writes it", file=sys.stderr)
        else:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
    return outdated if is_check else 0


sys.exit(main())
