"""Compares the page of `bufferscope serve` in Chromium with the program, on paths on which we planted a queue, or none.

Writes docs/page-accuracy.md. Exits with 1 if the verdict of the page is neither the program's nor "cannot tell" in more
than 5 % of the trials, if the page names a queue on a clean path, or if its added delay differs from the program's by
more than 15 % in half of the trials.
"""

import argparse
import json
import random
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from playwright.sync_api import Error, sync_playwright

from labs import KINDS, PORTS, Trial
from trials import CUBIC, is_disturbed, measured

PAGE = Path(__file__).parents[2] / "docs" / "page-accuracy.md"
CAUSES = Path(__file__).parent / "page_misses.md"
"""What was found about the trials that differ, written by hand."""
ENGINE = "host"
"""Chromium is a program of this machine, so its path is one of this machine's namespaces."""
SEEDS = range(861_001, 861_051)
"""The seeds of the page, which were not used while the page was written."""
CLEAN = ("clean", "policer", "window")
CHOSEN = (*(port.port for port in PORTS), *CLEAN, "both ways", "burst", "silent router", "bridged modem")
"""The kinds of trials that this machine's kernel can build."""
FLOWS = 6
"""Connections of the page in one direction; the program has as many."""
LEAST_SAME = 0.95
LARGEST_ERROR = 0.15
PORT = 47300
START_S = 30
TEST_MS = 200_000
REPETITIONS = 1
"""A trial in which a processor limited the load is repeated so many times."""
CHROMIUM = "/usr/bin/chromium"
ARGUMENTS = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")
BOTTLENECK = "The browser was the bottleneck"


@dataclass(frozen=True)
class Side:
    """What one of the two says about the loaded phase."""

    outcome: str
    named: Sequence[str]
    """The locations of its answers, as in `up router_uplink 2`."""
    added_ms: float | None
    """The added delay at the median."""
    lost: float
    """The part of the test packets under load that were lost."""
    is_bottleneck: bool = False
    """Whether it is a page that says that the browser was the bottleneck."""


@dataclass(frozen=True)
class Compared:
    """What came out of a trial."""

    trial: Trial
    page: Side | None
    program: Side | None
    way: str = ""
    """What carried the page's pings."""
    error: str = ""

    @property
    def agreement(self) -> str:
        """`same`, `cannot tell` (less, but nothing else), `different`, or `failed`."""
        page, program = self.page, self.program
        if page is None or program is None:
            return "failed"
        if page.outcome == program.outcome and set(page.named) == set(program.named):
            return "same"
        if page.outcome == "cannot_tell" or page.is_bottleneck:
            return "cannot tell"
        directions = [{named.split()[0] for named in each.named} for each in (page, program)]
        is_wider = set(program.named) <= set(page.named) and directions[0] == directions[1]
        if page.outcome == program.outcome and is_wider:
            return "cannot tell"
        return "different"

    @property
    def error_share(self) -> float | None:
        """By how much the added delays differ, if both have found a queue."""
        page, program = self.page, self.program
        if page is None or program is None or {page.outcome, program.outcome} != {"queue"}:
            return None
        if not page.added_ms or not program.added_ms:
            return None
        return page.added_ms / program.added_ms - 1


def drawn(seed: int) -> Trial:
    """The trial of a seed."""
    dice = random.Random(f"page {seed}")
    return Trial(
        seed=seed,
        kind=CHOSEN[seed % len(CHOSEN)],
        rate_mbit=round(10 ** dice.uniform(0, 2.3), 1),
        rtt_ms=round(10 ** dice.uniform(0.7, 2.08), 1),
        buffer_ms=round(10 ** dice.uniform(1.6, 2.9), 0),
        flows=FLOWS,
    )


def compared(trial: Trial, keep: Path | None) -> Compared:
    """Run a trial with both."""
    lab = KINDS[trial.kind].lab(trial)
    with tempfile.TemporaryDirectory() as directory:
        saved = (keep or Path(directory)).resolve() / f"page-{trial.seed}.jsonl"

        def before(token: str) -> str:
            words = (sys.executable, __file__, "--browse", "h2", token, str(saved), lab.phase)
            return f"{CUBIC}; {shlex.join(words)}"

        try:
            for _ in range(1 + REPETITIONS):
                end, _ = measured(trial, lab, ENGINE, before)
                start, page = [json.loads(line) for line in saved.read_text(encoding="utf-8").splitlines()]
                if not is_disturbed(end):
                    break
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            return Compared(trial, None, None, error=str(error)[-300:])
        if keep is not None:
            (keep / f"program-{trial.seed}.json").write_text(json.dumps(end), encoding="utf-8")
        is_bottleneck = BOTTLENECK in saved.with_suffix(".txt").read_text(encoding="utf-8")
    found, own = side(page, lab.phase, is_bottleneck), side(end, lab.phase)
    return Compared(trial, found, own, start["parameters"]["pings"])


def side(end: Mapping[str, Any], kind: str, is_bottleneck: bool = False) -> Side | None:
    """What the last event of a test says about a phase."""
    phase = next((each for each in end["verdict"]["phases"] if each["kind"] == kind), None)
    if phase is None:
        return None
    named = [
        f"{answer['direction']} {each['place']} {each['link']}"
        for answer in phase["where"]
        for each in answer["answer"]["locations"]
    ]
    added_ns, loaded = phase["numbers"]["added"]["p50_ns"], phase["numbers"]["loaded"]
    return Side(
        phase["outcome"]["kind"],
        sorted(named),
        None if added_ns is None else added_ns / 1e6,
        loaded["lost"] / max(loaded["count"], 1),
        is_bottleneck,
    )


def browse(host: str, token_file: Path, saved: Path, part: str) -> None:
    """Run a part of the page's test in Chromium, and save its result."""
    until = time.monotonic() + START_S
    while not (token_file.exists() and token_file.read_text(encoding="utf-8")):
        if time.monotonic() > until:
            raise SystemExit(f"{token_file}: no token")
        time.sleep(0.1)
    secret = token_file.read_text(encoding="utf-8").split("-")[0].strip()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
        page = browser.new_context(accept_downloads=True, locale="en-GB").new_page()
        while True:
            try:
                page.goto(f"http://{host}:{PORT}/#{secret}")
                break
            except Error:
                if time.monotonic() > until:
                    raise
                time.sleep(0.2)
        page.get_by_text("Choose the parts").click()
        for other in {"download", "upload", "both"} - {part}:
            page.get_by_label(other, exact=True).uncheck()
        page.get_by_role("button", name="Start the test").click()
        page.locator("#result:visible, #error:visible:not(:empty)").first.wait_for(timeout=TEST_MS)
        if failure := page.locator("#error").inner_text():
            raise SystemExit(f"the page shows: {failure}")
        shown = page.locator("#sentences").inner_text()
        saved.with_suffix(".txt").write_text(shown, encoding="utf-8")
        with page.expect_download() as download:
            page.locator("#save").click()
        download.value.save_as(saved)
        browser.close()


def failures(rows: Sequence[Compared]) -> list[str]:
    """The aims that are not met."""
    fair = [each for each in rows if each.agreement != "failed"]
    errors = [abs(each.error_share) for each in rows if each.error_share is not None]
    named = [each for each in fair if each.trial.kind in CLEAN and each.page and each.page.named]
    different = sum(each.agreement == "different" for each in fair)
    checks = {
        "verdicts differ too often": different > (1 - LEAST_SAME) * len(fair),
        "the page named a queue on a clean path": bool(named),
        "added delays differ too much": bool(errors) and statistics.median(errors) > LARGEST_ERROR,
    }
    return [text for text, is_missed in checks.items() if is_missed]


def written(rows: Sequence[Compared]) -> str:
    """The text of the page about the trials."""
    templates = Environment(
        loader=FileSystemLoader(Path(__file__).parent), undefined=StrictUndefined, trim_blocks=True, autoescape=False
    )
    fair = [each for each in rows if each.agreement != "failed"]
    errors = sorted(abs(each.error_share) for each in rows if each.error_share is not None)
    return templates.get_template("page_accuracy.md.jinja").render(
        rows=rows,
        fair=fair,
        errors=errors,
        median=statistics.median(errors) if errors else None,
        near=sum(error <= LARGEST_ERROR for error in errors),
        clean=[each for each in fair if each.trial.kind in CLEAN],
        kinds=[(kind, KINDS[kind].text, [each for each in rows if each.trial.kind == kind]) for kind in CHOSEN],
        planned=len(SEEDS),
        causes=CAUSES.read_text(encoding="utf-8").strip() if CAUSES.exists() else "",
    )


def from_row(row: Mapping[str, Any]) -> Compared:
    """A trial as `--rows` wrote it."""
    sides = {name: row[name] and Side(**row[name]) for name in ("page", "program")}
    return Compared(**{**row, **sides, "trial": Trial(**row["trial"])})


def main(arguments: Sequence[str]) -> int:
    """Run the trials one after the other, and write the page."""
    parser = argparse.ArgumentParser(prog="page_accuracy.py", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=len(SEEDS), help="run only so many trials")
    parser.add_argument(
        "--first", type=int, default=SEEDS.start, help="the first seed, for trials other than the page's"
    )
    parser.add_argument("--kind", choices=CHOSEN, help="only trials of this kind")
    parser.add_argument("--page", type=Path, default=PAGE, help=f"what is written (default: docs/{PAGE.name})")
    parser.add_argument("--rows", type=Path, help="a file with a line of JSON per trial; those in it are not run again")
    parser.add_argument("--keep", type=Path, help="a directory for what both have observed in each trial")
    parser.add_argument("--browse", nargs=4, metavar=("HOST", "TOKEN_FILE", "SAVED", "PART"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.browse:
        host, token, saved, part = options.browse
        browse(host, Path(token), Path(saved), part)
        return 0
    known: dict[Trial, Compared] = {}
    if options.rows and options.rows.exists():
        lines = options.rows.read_text(encoding="utf-8").splitlines()
        known = {each.trial: each for each in (from_row(json.loads(line)) for line in lines)}
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
    rows: list[Compared] = []
    for trial in map(drawn, range(options.first, options.first + options.seeds)):
        if options.kind not in (None, trial.kind):
            continue
        each = known.get(trial) or compared(trial, options.keep)
        rows.append(each)
        print(
            f"{trial.seed} {trial.kind} {trial.rate_mbit}: {each.agreement} {each.page} {each.program} {each.error}",
            file=sys.stderr,
        )
        if options.rows and trial not in known:
            with options.rows.open("a", encoding="utf-8") as appended:
                appended.write(json.dumps(asdict(each)) + "\n")
    options.page.write_text(written(rows), encoding="utf-8")
    print(f"Written: {options.page}", file=sys.stderr)
    missed = failures(rows)
    for text in missed:
        print(f"Not met: {text}", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
