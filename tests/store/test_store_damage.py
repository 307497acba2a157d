"""Whatever a run directory contains, by accident or from somebody else, is read or rejected in one clear line."""

import copy
import json
import os
import random
import shlex
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from handmade import SCHEMAS
from laboratory import MORE, SMALL, TABLES, Answer, write

import bufferscope as bs
from bufferscope import report
from bufferscope.report import runs
from bufferscope.store import FORMAT, tables
from bufferscope.store import sandboxed_decode as trial
from bufferscope.store.writing import staged, write_metadata


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the simulator."""
    directory = tmp_path_factory.mktemp("whole")
    lab = write(directory, SMALL.replace('duration = "2s"', 'duration = "1s"') + MORE)
    return bs.run(lab, out=directory / "results").runs[0].path


@pytest.fixture
def run(whole: Path, tmp_path: Path) -> Path:
    """A copy that a test may damage."""
    return Path(shutil.copytree(whole, tmp_path / "lab" / whole.name))


@pytest.fixture
def foreign(run: Path) -> Path:
    """The same as if it came from elsewhere, without checksums of its tables."""
    change(run, lambda meta: meta.pop("files"))
    return run


def change(run: Path, act: Callable[[dict[str, Any]], object]) -> None:
    file = run / "run.json"
    meta = json.loads(file.read_bytes())
    act(meta)
    file.write_text(json.dumps(meta))


def use(run: Path) -> None:
    """What everything else is made of: the run, its tables, its metrics, its verdicts."""
    result = bs.load(run)
    assert all(getattr(result, table) is not None for table in TABLES)
    _ = result.metrics, result.expectations


def refusal(run: Path, table: str | None = None) -> str:
    """How the run is refused, or only this table of it: that takes a tenth of the time."""
    with pytest.raises(bs.StoreError) as error:
        getattr(bs.Run(run), table) if table else use(run)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_every_table_is_written_with_its_size_and_checksum(run: Path) -> None:
    files = bs.Run(run).meta["files"]
    assert {name: file["bytes"] for name, file in files.items()} == {
        table: (run / f"{table}.parquet").stat().st_size for table in TABLES
    }


def test_the_columns_that_are_checked_are_those_that_engines_write(whole: Path) -> None:
    for table in TABLES:
        assert pl.read_parquet_schema(whole / f"{table}.parquet") == tables.columns(table) == SCHEMAS[table]


@pytest.mark.parametrize("table", TABLES)
def test_a_flipped_byte_anywhere_in_a_table_is_found_before_it_is_decoded(
    table: str, run: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = run / f"{table}.parquet"
    good = file.read_bytes()
    for position in range(0, len(good), 1 + len(good) // 100):
        file.write_bytes(good[:position] + bytes([good[position] ^ 0x55]) + good[position + 1 :])
        assert "not what was written" in refusal(run, table)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("table", ["probes", "flows"])
def test_a_flipped_byte_of_a_foreign_table_is_refused_or_read(
    table: str, foreign: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = foreign / f"{table}.parquet"
    good = file.read_bytes()
    chance = random.Random(table)
    for position in sorted(chance.sample(range(len(good)), 5)):
        file.write_bytes(good[:position] + bytes([good[position] ^ chance.randrange(1, 256)]) + good[position + 1 :])
        with suppress(bs.StoreError):
            use(foreign)
    assert capfd.readouterr() == ("", "")


def test_a_file_that_kills_the_decoder_is_refused_and_the_others_are_read(
    foreign: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deadly = "if path.endswith('flows.parquet'): import os; os.abort()\n"
    monkeypatch.setattr(
        trial, "_DECODE", trial._DECODE.replace("    try:\n        polars", f"    {deadly}    try:\n        polars")
    )
    run = bs.Run(foreign)
    assert run.probes.height
    assert run.queues.height
    with pytest.raises(bs.StoreError, match=r"flows.parquet: not readable \(it makes the decoder crash\)"):
        _ = run.flows


@pytest.mark.parametrize("table", TABLES)
def test_a_table_cut_anywhere_is_refused(table: str, run: Path) -> None:
    file = run / f"{table}.parquet"
    good = file.read_bytes()
    for length in [0, 3, 4, 8, *range(11, len(good), 1 + len(good) // 12), len(good) - 1]:
        file.write_bytes(good[:length])
        assert f"{table}.parquet: found {length} bytes" in refusal(run, table)


def test_a_foreign_table_cut_anywhere_is_refused(foreign: Path) -> None:
    file = foreign / "probes.parquet"
    good = file.read_bytes()
    for length in [0, 3, 8, len(good) // 2, len(good) - 1]:
        file.write_bytes(good[:length])
        assert "probes.parquet: not readable" in refusal(foreign)


@pytest.mark.parametrize(("table", "column"), [("queues", "layer"), ("sojourns", "layer"), ("flows", "state")])
def test_a_word_that_a_foreign_table_cannot_have_is_named(table: str, column: str, foreign: Path) -> None:
    file = foreign / f"{table}.parquet"
    pl.read_parquet(file).with_columns(pl.lit("radio").alias(column)).write_parquet(file)
    assert f"{table}.parquet: not readable (column {column}: found 'radio'; allowed: " in refusal(foreign)


def test_a_byte_changed_in_the_metadata_is_refused_or_read(run: Path) -> None:
    file = run / "run.json"
    good = file.read_bytes()
    chance = random.Random(1)
    for _ in range(300):
        changed = bytearray(good)
        changed[chance.randrange(len(good))] = chance.randrange(256)
        file.write_bytes(changed)
        with suppress(bs.StoreError):
            use(run)


VALUES = [None, -1, 0, 2**62, 2**70, 1.5, 1e308, "", "x", "../../x", [], {}, True, [1], {"a": 1}, "\x1b[31m"]
"""What may stand where something else belongs."""


def places(value: Any, place: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The places of values in a document; only the first of each list."""
    if place:
        yield place
    if isinstance(value, dict):
        for key in value:
            yield from places(value[key], (*place, key))
    elif isinstance(value, list) and value:
        yield from places(value[0], (*place, 0))


def test_a_key_that_is_missing_or_holds_something_else_is_refused_or_of_no_consequence(
    run: Path, cli: Callable[..., Answer]
) -> None:
    good = json.loads((run / "run.json").read_bytes())
    chance = random.Random(1)
    refused = 0
    for *above, last in places(good):
        changed = copy.deepcopy(good)
        holder = changed
        for key in above:
            holder = holder[key]
        if chance.random() < 0.2:
            del holder[last]
        else:
            holder[last] = chance.choice(VALUES)
        (run / "run.json").write_text(json.dumps(changed))
        answer = cli("show", str(run))
        assert answer.status in (0, 2), (above, last)
        assert answer.status == 0 or answer.err.count("\n") == 1, (above, last, answer.err)
        refused += answer.status == 2
    assert refused > 50


ROTTEN: dict[str, tuple[Callable[[Path], object], str]] = {
    "nested too deeply": (
        lambda run: (run / "run.json").write_text(f'{{"format": {FORMAT}, "x": ' + "[" * 100_000),
        "deeply",
    ),
    "nested deeply": (
        lambda run: change(run, lambda meta: meta["document"].update(x=json.loads("[" * 500 + "]" * 500))),
        "levels of nesting",
    ),
    "not a number": (lambda run: change(run, lambda meta: meta.update(wall_s=float("nan"))), "NaN is no number"),
    "infinite": (
        lambda run: (run / "run.json").write_text(
            (run / "run.json").read_text().replace('"wall_s": ', '"wall_s": 1e999')
        ),
        "not JSON",
    ),
    "an integer of 5,000 digits": (
        lambda run: (run / "run.json").write_text(f'{{"format": {FORMAT}, "seed": ' + "9" * 5000 + "}"),
        "not JSON",
    ),
    "half of a surrogate pair": (lambda run: change(run, lambda meta: meta.update(title="\ud800")), "U+D800"),
    "too large": (lambda run: os.truncate(run / "run.json", 1 << 40), "allowed: 67108864"),
    "a pipe": (lambda run: piped(run / "run.json"), "no run here"),
    "a table that is a pipe": (lambda run: piped(run / "probes.parquet"), "not a file"),
    "a table that never ends": (lambda run: linked(run / "probes.parquet", "/dev/zero"), "not a file"),
    "a table that is a directory": (lambda run: directory(run / "probes.parquet"), "not a file"),
    "a table that points at itself": (lambda run: linked(run / "probes.parquet", "probes.parquet"), "not readable"),
    "a unit's name as a path": (
        lambda run: change(run, lambda meta: meta.update(engine="../sim")),
        "engine: found '../sim'",
    ),
    "a ping of no size": (
        lambda run: change(run, lambda meta: pings(meta)[0].pop("payload_bytes")),
        "payload_bytes: missing",
    ),
    "a ring of no size": (
        lambda run: change(run, lambda meta: meta["scenario"]["links"][0]["reverse"].update(ring={"bql": None})),
        "scenario.links[0].reverse.ring.size_packets: missing",
    ),
    "a ring that limits its bytes or not": (
        lambda run: change(
            run,
            lambda meta: meta["scenario"]["links"][0]["forward"].update(
                ring={"size_packets": 64, "bql": {"hold_ns": 1}}
            ),
        ),
        "scenario.links[0].forward.ring.bql.min_bytes: missing",
    ),
    "a radio on no link": (
        lambda run: change(run, lambda meta: meta["scenario"].update(wifi=[wlan(stations=[{"link": 7}])])),
        "scenario.wifi[0].stations[0].link: found 7",
    ),
    "a radio with queues of no kind": (
        lambda run: change(run, lambda meta: meta["scenario"].update(wifi=[wlan(queueing={"kind": "lifo"})])),
        "scenario.wifi[0].queueing.kind: found 'lifo'",
    ),
    "traffic to nowhere": (
        lambda run: change(run, lambda meta: meta["scenario"]["traffic"][0].update(to=7)),
        "scenario.traffic[0].to: found 7",
    ),
    "traffic without a way": (
        lambda run: change(run, lambda meta: meta["scenario"].update(links=[])),
        "a path leads to",
    ),
    "a schedule that goes back": (
        lambda run: change(
            run,
            lambda meta: meta["scenario"]["links"][0]["forward"].update(
                rate=[{"from_ns": 0, "bits_per_second": 1}, {"from_ns": 0, "bits_per_second": 2}]
            ),
        ),
        "in the order of time",
    ),
    "a column of another type": (lambda run: retyped(run), "column seq: found String; expected Int64"),
    "another's table": (
        lambda run: (run / "drops.parquet").replace(run / "probes.parquet"),
        "probes.parquet: without the column probe",
    ),
    "fewer rows than were written": (
        lambda run: change(run, lambda meta: meta["tables"].update(probes=1 << 40)),
        f"{1 << 40} were written",
    ),
}


def pings(meta: dict[str, Any]) -> list[dict[str, Any]]:
    return [entry for entry in meta["scenario"]["traffic"] if entry["kind"] == "ping"]


def wlan(**keys: object) -> dict[str, object]:
    """A Wi-Fi network on the first link."""
    queueing = {"kind": "mac80211", "airtime_fairness": True}
    return {"name": "wlan", "access_point": 0, "stations": [{"link": 0}], "queueing": queueing, **keys}


def piped(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def linked(file: Path, target: str) -> None:
    file.unlink()
    file.symlink_to(target)


def directory(file: Path) -> None:
    file.unlink()
    file.mkdir()


def retyped(run: Path) -> None:
    pl.read_parquet(run / "probes.parquet").cast({"seq": pl.String}).write_parquet(run / "probes.parquet")


@pytest.mark.parametrize("how", ROTTEN)
def test_a_rotten_run_is_refused_in_a_line(how: str, foreign: Path) -> None:
    rot, words = ROTTEN[how]
    rot(foreign)
    assert words in refusal(foreign)


def test_a_table_that_unpacks_to_more_than_memory_holds_is_refused(
    foreign: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = 2_000_000
    zeros = {column: pl.repeat(0, rows, eager=True).cast(kind) for column, kind in SCHEMAS["transfers"].items()}
    pl.DataFrame(zeros).write_parquet(foreign / "transfers.parquet", compression="zstd")
    assert (foreign / "transfers.parquet").stat().st_size < 1 << 20
    change(foreign, lambda meta: meta["tables"].update(transfers=rows))
    monkeypatch.setattr(tables, "memory_bytes", lambda: 64 << 20)
    assert "not enough memory" in refusal(foreign)


@pytest.mark.parametrize("name", ["../../x", "..", "/etc/x", "a/b", "", "a\nb", "-rf", ".hidden", "x" * 300])
def test_an_experiments_name_is_no_path(name: str, foreign: Path, tmp_path: Path) -> None:
    change(foreign, lambda meta: meta.update(experiment=name))
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(bs.StoreError, match="experiment: found"):
        report.build([bs.load(foreign)], tmp_path / "a" / "b" / "report")
    assert sorted(tmp_path.rglob("*")) == before, "nothing is written"


@pytest.mark.parametrize("name", ["../source", "rtt/../rtt", "__init__", "os"])
def test_a_figures_name_is_one_of_ours(name: str, foreign: Path, tmp_path: Path) -> None:
    change(foreign, lambda meta: meta["document"].update(figures=[name]))
    with pytest.raises(bs.StoreError, match="figure"):
        report.build([bs.load(foreign)], tmp_path / "report")


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("--out=/etc", ["./--out=/etc"]),
        ("$(reboot).toml", ["$(reboot).toml"]),
        ("a b; reboot", ["a b; reboot"]),
        ("lab.toml", ["lab.toml"]),
    ],
)
def test_the_command_of_a_foreign_run_names_a_file_and_does_nothing_else(
    path: str, words: list[str], foreign: Path
) -> None:
    change(foreign, lambda meta: meta.update(path=path))
    command = shlex.split(runs.command([bs.Run(foreign)]))
    assert command == ["bufferscope", "run", *words, "--seed", "1"]


def test_a_page_is_made_of_a_foreign_run(foreign: Path, tmp_path: Path) -> None:
    assert report.build([bs.load(foreign)], tmp_path / "report").is_file()


@pytest.mark.parametrize("name", ["run\x1b[2J", "run\n", os.fsdecode(b"run\xff")])
def test_a_directory_whose_name_cannot_be_shown_is_refused(name: str, run: Path) -> None:
    odd = run.rename(run.with_name(name))
    with pytest.raises(bs.StoreError, match="can't be shown"):
        bs.Run(odd)


def test_a_run_that_was_replaced_since_it_was_loaded_is_not_called_damaged(run: Path) -> None:
    loaded = bs.Run(run)
    empty = loaded.probes.drop("run").clear()
    with staged(run) as place:
        for table in TABLES:
            shutil.copy(run / f"{table}.parquet", place)
        empty.write_parquet(place / "probes.parquet")
        write_metadata(place, {**loaded.meta, "tables": {}})
    del loaded.probes
    with pytest.raises(bs.StoreError, match="another run has taken its place"):
        _ = loaded.probes
    assert bs.Run(run).probes.is_empty()


def test_a_run_that_may_not_be_looked_at_is_named(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: Path) -> bool:
        raise PermissionError(13, "Permission denied", str(run))

    monkeypatch.setattr(Path, "is_file", refuse)
    assert refusal(run) == f"{run}: not readable (Permission denied)"
