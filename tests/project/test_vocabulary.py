"""The lint of the project's prose, scripts/vocabulary.py: what it finds, what it leaves alone, and how it ends."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"
sys.path.insert(0, str(SCRIPTS))

import vocabulary  # noqa: E402

LIST = SCRIPTS / "vocabulary.toml"

AVOIDED = [
    ("Such a traffic fills the queue.", "a traffic"),
    ("There is a row for each traffic.", "each traffic"),
    ("The traffic's packets are marked.", "traffic's"),
    ("The entry becomes several traffics.", "traffics"),
    ("The reason is told.", "is told"),
    ("The user was told.", "was told"),
    ("Copies and originals are told apart.", "told apart"),
    ("The metrics tell how good the call was.", "metrics tell"),
    ("A packet stands in the queue.", "packet stands"),
    ("No queue stands in this port.", "queue stands"),
    ("It is what stands in front of the wire.", "what stands in"),
    ("What waits, in inner disciplines too.", "What waits"),
    ("Somebody may begin to send.", "Somebody"),
    ("The sender does not heed it.", "heed"),
    ("It names a class that there is not.", "that there is not"),
    ("What stands for a wire.", "What stands for"),
    ("The news of an acknowledgement.", "news"),
    ("It holds the simulator against a kernel.", "holds the simulator against"),
    ("The table has one row a ping.", "one row a "),
    ("The kernel at hand does not have it.", "at hand"),
    ("Queuing disciplines.", "Queuing"),
]
ALLOWED = [
    "Each traffic entry is a source.",
    "The traffic of all sources crosses the port, and no traffic is dropped.",
    "A standing queue has 40 packets.",
    "Each run has one row per ping.",
    "if value is None:",
    "The terms that we do not use:\n  Not: *a traffic, a packet stands in a queue*.",
]


def found_in(root: Path, name: str, text: str) -> list[vocabulary.Finding]:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return vocabulary.check(vocabulary.read(LIST), root)


def with_list(root: Path, text: str) -> list[str]:
    file = root / "list.toml"
    file.write_text(text, encoding="utf-8")
    return [str(finding) for finding in vocabulary.check(vocabulary.read(file), root)]


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, SCRIPTS / "vocabulary.py", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("sentence", "phrase"), AVOIDED, ids=[phrase.strip() for _, phrase in AVOIDED])
def test_a_planted_phrase_is_found_where_it_is(tmp_path: Path, sentence: str, phrase: str) -> None:
    findings = found_in(tmp_path, "docs/page.md", f"# A page\n\n{sentence}\n")
    assert {finding.path for finding in findings} == {"docs/page.md"}
    assert {finding.line for finding in findings} == {3}
    assert phrase.strip() in {finding.text for finding in findings}


@pytest.mark.parametrize("text", ALLOWED)
def test_usual_sentences_pass(tmp_path: Path, text: str) -> None:
    assert found_in(tmp_path, "docs/page.md", text) == []


def test_a_phrase_is_found_across_the_end_of_a_line(tmp_path: Path) -> None:
    (finding,) = found_in(tmp_path, "docs/page.md", "The reason is\ntold.\n")
    assert (finding.line, finding.text) == (1, "is told")


def test_a_phrase_is_found_across_the_lines_of_a_comment(tmp_path: Path) -> None:
    (finding,) = found_in(tmp_path, "scripts/a.py", "x = 1\n# The reason is\n# told.\n")
    assert (finding.line, finding.text) == (2, "is # told")


def test_a_phrase_does_not_go_on_in_the_next_paragraph(tmp_path: Path) -> None:
    assert found_in(tmp_path, "docs/page.md", "What this is\n\ntold\n") == []


def test_fenced_blocks_of_markdown_are_not_checked(tmp_path: Path) -> None:
    assert found_in(tmp_path, "README.md", "```console\n$ ls\na traffic\n```\n") == []


def test_only_the_unreleased_part_of_the_changelog_is_checked(tmp_path: Path) -> None:
    text = "# Changelog\n\n## [Unreleased]\n\n- a traffic\n\n## [0.1.0]\n\n- a traffic\n"
    assert [finding.line for finding in found_in(tmp_path, "CHANGELOG.md", text)] == [5]


def test_generated_pages_are_not_checked(tmp_path: Path) -> None:
    assert found_in(tmp_path, "docs/reference/metrics.md", "a traffic") == []


def test_a_finding_names_the_file_the_line_and_what_to_say(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("Nothing here.\nAn ugly word.\n", encoding="utf-8")
    deny = "paths = ['*.md']\n[[deny]]\npattern = 'ugly'\nsay = '\"plain\"'\n"
    assert with_list(tmp_path, deny) == ['notes.md:2: found "ugly": say "plain"']


def test_a_pattern_may_have_its_own_paths(tmp_path: Path) -> None:
    for name in ("notes.md", "code.py"):
        (tmp_path / name).write_text("news\n", encoding="utf-8")
    deny = "paths = ['*.md']\n[[deny]]\npattern = 'news'\nsay = 'x'\npaths = ['**/*.py']\n"
    assert with_list(tmp_path, deny) == ['code.py:1: found "news": say x']


def test_exceptions_hold_for_one_pattern_or_for_all(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("`news.rs` has news\nNot: news, gossip\ngossip\n", encoding="utf-8")
    deny = """
        paths = ["*.md"]
        except = ["^Not: .*$"]
        [[deny]]
        pattern = 'news'
        say = 'x'
        except = ['`news\\.rs`']
        [[deny]]
        pattern = 'gossip'
        say = 'y'
    """
    assert with_list(tmp_path, deny) == ['notes.md:1: found "news": say x', 'notes.md:3: found "gossip": say y']


def test_the_exit_status_says_whether_something_was_found(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("Traffic of one source.\n", encoding="utf-8")
    clean = run(tmp_path)
    assert (clean.returncode, clean.stdout, clean.stderr) == (0, "", "")
    (tmp_path / "README.md").write_text("A traffic.\n", encoding="utf-8")
    found = run(tmp_path)
    assert found.returncode == 1
    assert found.stdout.startswith('README.md:1: found "A traffic": say ')


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[deny]]\npattern = '('\nsay = 'x'\n", "deny 1: '(' is not a regular expression"),
        ("[[deny]]\npattern = 'x'\n", "deny 1: no say"),
        ("[[deny]]\npattern = 'x'\nsay = 'y'\npath = []\n", "deny 1: unknown path"),
        ("deny = [", "list.toml"),
    ],
)
def test_a_mistake_in_the_list_has_a_status_of_its_own(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "list.toml"
    file.write_text(text, encoding="utf-8")
    done = run("--list", file, tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
