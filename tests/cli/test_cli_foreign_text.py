"""Text from files that anybody may have written, as it reaches the terminal."""

import json
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from bufferscope.base.errors import printable, printable_lines
from bufferscope.cli.saying import note, say
from bufferscope.cli.terminal import PlainConsole, plain_table

HOSTILE = "\x1b]0;owned\x07\x1b[31mred\x9b1m\u202etxt\u2066\u200f\r[bold]b[/bold] :smile: [fe80::1]:443"


def _is_safe(text: str) -> bool:
    return all(c == "\n" or c.isprintable() or c == "\xa0" for c in text)


def test_all_that_controls_a_terminal_becomes_an_escape() -> None:
    assert _is_safe(printable(HOSTILE))
    assert _is_safe(printable_lines(HOSTILE + "\nnext"))
    assert printable("plain \xa0 Größe 測試") == "plain \xa0 Größe 測試"
    assert printable("a\nb") == r"a\nb"


def test_a_console_shows_text_as_text() -> None:
    for is_terminal in (False, True):
        shown = StringIO()
        console = PlainConsole(
            file=shown, width=200, markup=False, emoji=False, force_terminal=is_terminal, color_system=None
        )
        table = plain_table(HOSTILE)
        table.add_column("Name")
        table.add_row(HOSTILE)
        console.print(table, HOSTILE)
        assert _is_safe(shown.getvalue()), ascii(shown.getvalue())
        assert shown.getvalue().count("[bold]b[/bold] :smile: [fe80::1]:443") >= 2


def test_lines_are_printed_without_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    say(HOSTILE)
    note(HOSTILE + "\nsecond")
    out, err = capsys.readouterr()
    assert _is_safe(out)
    assert _is_safe(err)
    assert err.count("\n") == 1


def test_no_part_of_an_import_controls_the_terminal(cli: Callable[..., Any], tmp_path: Path) -> None:
    flent = {
        "version": 4,
        "metadata": {
            "NAME": HOSTILE,
            "TITLE": HOSTILE,
            "HOST": HOSTILE,
            "LOCAL_HOST": HOSTILE,
            "NOTE": HOSTILE,
            "LENGTH": 2,
            "STEP_SIZE": 1,
            "SERIES_META": {"Ping (ms) ICMP": {"RUNNER": "PingRunner", "UNITS": "ms"}},
        },
        "x_values": [0, 1, 2],
        "results": {"Ping (ms) ICMP": [1.0, 2.0, 3.0], HOSTILE: [1.0, 2.0, 3.0]},
    }
    contents = {
        "a.flent": json.dumps(flent),
        "b.csv": f"{HOSTILE},rtt_ms\n{HOSTILE},1\n",
        "c.txt": f"PING {HOSTILE} (192.0.2.1) 56(84) bytes of data.\n"
        f"64 bytes from {HOSTILE}: icmp_seq=1 ttl=64 time=1 ms\n",
        "d.json": json.dumps({"error": HOSTILE, "start": {"version": HOSTILE}}),
        "e.toml": f'title = "{HOSTILE.encode("unicode_escape").decode()}"\n',
    }
    for name, content in contents.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
        command = "show" if name.endswith("toml") else "import"
        for arguments in ([], ["--json"]):
            answer = cli(command, name, *arguments)
            assert _is_safe(answer.out), (name, ascii(answer.out))
            assert _is_safe(answer.err), (name, ascii(answer.err))


def test_an_experiment_is_shown_without_its_control_characters(cli: Callable[..., Any], tmp_path: Path) -> None:
    text = cli("show", "battling-rrul").out
    (tmp_path / "x.toml").write_text(f"# \u202e \x9b[31m\n{text}", encoding="utf-8")
    answer = cli("show", "x.toml")
    assert answer.status == 0, answer.err
    assert _is_safe(answer.out + answer.err)
    assert answer.out.endswith(text)
