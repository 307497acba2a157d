"""Which line of the table of instructions by commit judges a build."""

import csv

from counting import AS_COMMITTED, BY_COMMIT, build, last_of

LINES = [
    {"commit": "a", "profile": "release", "rustc": "1.95.0", "pfifo 1": "1700"},
    {"commit": "b", "profile": "release", "rustc": "1.95.0", "pfifo 1": "1600"},
    {"commit": "b", "profile": "release lto=off", "rustc": "1.95.0", "pfifo 1": "1800"},
]


def test_a_count_is_judged_by_the_last_line_of_the_same_build() -> None:
    assert last_of(build({}, "1.95.0"), LINES) == LINES[1]
    assert last_of(build({"CARGO_PROFILE_RELEASE_LTO": "off"}, "1.95.0"), LINES) == LINES[2]


def test_no_line_judges_another_compiler_or_other_flags() -> None:
    assert last_of(build({}, "1.96.0"), LINES) is None
    assert last_of(build({"RUSTFLAGS": "-C target-cpu=native"}, "1.95.0"), LINES) is None
    assert last_of(build({"CARGO_PROFILE_RELEASE_OPT_LEVEL": "2"}, "1.95.0"), LINES) is None


def test_other_profiles_and_debugging_information_change_no_build() -> None:
    environment = {"CARGO_PROFILE_LIVE_LTO": "off", "CARGO_PROFILE_RELEASE_DEBUG": "0", "CARGO_INCREMENTAL": "0"}
    assert build(environment, "1.95.0") == {"profile": AS_COMMITTED, "rustc": "1.95.0"}


def test_the_table_has_lines_of_the_committed_profile() -> None:
    with BY_COMMIT.open(newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    rows = [line for line in lines if line["profile"] == AS_COMMITTED]
    assert rows
    assert all(float(line["pfifo 1"]) > 0 for line in lines)
