"""Every target of Makefile is run by continuous integration, the slow ones in a short form."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
TARGETS = set(re.findall(r"^([a-z-]+):.*## ", MAKEFILE, re.MULTILINE)) | set(
    re.findall(r"^([a-z-]+):(?! *=)", MAKEFILE, re.MULTILINE)
)
SCRIPT = (ROOT / "scripts" / "every-target.sh").read_text(encoding="utf-8")


def test_no_target_is_left_out() -> None:
    tried = set(re.findall(r"^ *try ([a-z-]+)", SCRIPT, re.MULTILINE))
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    run_by_ci = set(re.findall(r"^step make (?:--\S+ )*([a-z-]+)$", ci, re.MULTILINE))
    (listed,) = re.findall(r"^for target in (.*); do$", SCRIPT, re.MULTILINE)
    assert {"test-rust", "test-python", "lint", "test-targets"} <= run_by_ci
    assert tried | run_by_ci | set(listed.split()) == TARGETS
    parts_or_whole = {"test", "lint-rust", "lint-python", "lint-crates"}
    assert set(listed.split()) - run_by_ci == {"test-slow", "clean"} | parts_or_whole, "of targets that are run"
