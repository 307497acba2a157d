"""One budget of memory and time for each file: whatever its format, a file ends within it, or in one clear error."""

import bz2
import gzip
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bufferscope.interop.importing import budget, content
from bufferscope.interop.importing.budget import Budget
from bufferscope.interop.importing.content import Unusable
from bufferscope.interop.importing.kinds import read

LINE = "192.0.2.{host} : [{seq}], 64 bytes, 1.0 ms (1 avg, 0% loss)\n"
ENTRIES = 40_000
LARGE = {
    "csv": "rtt_ms\n" + "1\n" * ENTRIES,
    "ping": "".join(f"64 bytes from h: icmp_seq={n} ttl=1 time=1 ms\n" for n in range(ENTRIES)),
    "windows": "Reply from 192.0.2.1: bytes=32 time=14ms TTL=57\n" * ENTRIES,
    "fping": "".join(LINE.format(host=1, seq=n) for n in range(ENTRIES)),
    "fping -C": "192.0.2.1 : " + " ".join(["1.0"] * ENTRIES) + "\n",
    "smokeping": "ping1 ping2\n" + "".join(f"{n * 300}: 0.1 0.1\n" for n in range(1, ENTRIES // 2)),
    "irtt": json.dumps({"version": {"json_format": 1}, "round_trips": [{}] * ENTRIES}),
    "flent": json.dumps({"metadata": {}, "x_values": [0] * ENTRIES, "results": {}}),
    "iperf3": json.dumps({"start": {}, "intervals": [{}] * ENTRIES}),
}
IMPORT = """
import pathlib, resource, sys
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[2]), int(sys.argv[2])))
from bufferscope.base.errors import InputError
from bufferscope.interop.importing.conversion import import_file
try:
    run = import_file(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[3]))
    print("imported", run.meta["tables"]["probes"])
except InputError as error:
    print(error)
"""


@pytest.mark.parametrize("name", LARGE)
def test_every_format_draws_on_the_memory_of_its_file(name: str) -> None:
    with budget.limits(Budget(200_000)), pytest.raises(Unusable, match=r"needs more memory than the 0\.0002 GB"):
        read(LARGE[name])


@pytest.mark.parametrize("name", LARGE)
def test_every_format_draws_on_the_time_of_its_file(name: str) -> None:
    with budget.limits(Budget(seconds=0)), pytest.raises(Unusable, match="reading takes more than 0 s"):
        read(LARGE[name])


COMPRESSED = pytest.mark.parametrize("compress", [gzip.compress, bz2.compress])


@COMPRESSED
def test_decompression_draws_on_the_time_as_well(compress: Callable[[bytes], bytes]) -> None:
    with budget.limits(Budget(seconds=0)), pytest.raises(Unusable, match="reading takes more than 0 s"):
        content.decompressed(compress(b"x"))


def test_the_probes_that_a_file_may_imply_are_counted_over_all_targets() -> None:
    text = "".join(LINE.format(host=host, seq=seq) for host in (1, 2, 3) for seq in (0, 400_000))
    with pytest.raises(Unusable, match="1,199,997 are missing; allowed: at most 1,000,000 in a file"):
        read(text)


@COMPRESSED
def test_many_members_take_time_in_proportion(compress: Callable[[bytes], bytes]) -> None:
    """Each was copied once for every member before it: 100,000 of them took minutes."""
    member = compress(b"x")
    begin = time.process_time()
    assert content.decompressed(member * 100_000) == b"x" * 100_000
    assert time.process_time() - begin < 20


@COMPRESSED
def test_bytes_behind_the_compressed_content_are_not_ignored(compress: Callable[[bytes], bytes]) -> None:
    assert content.decompressed(compress(b"x") + bytes(512)) == b"x"
    with pytest.raises(Unusable, match="found 4 bytes behind the compressed content"):
        content.decompressed(compress(b"x") + b"more")


@COMPRESSED
def test_a_small_file_cannot_become_a_huge_one(compress: Callable[[bytes], bytes]) -> None:
    packed = compress(bytes(64 << 20))
    assert len(packed) < 100_000
    with pytest.raises(Unusable, match="found more than 1000000 bytes when decompressed"):
        content.decompressed(packed, 1_000_000)
    for bad in (packed[:-20], compress(b"x" * 1000)[:-5]):
        with pytest.raises(Unusable, match="cut off"):
            content.decompressed(bad)


@pytest.mark.parametrize("megabytes", [800, 1200])
def test_with_little_memory_an_import_ends_in_one_error(tmp_path: Path, megabytes: int) -> None:
    file = tmp_path / "large.csv"
    file.write_text("rtt_ms\n" + "1\n" * 1_500_000)
    command = [sys.executable, "-c", IMPORT, str(file), str(megabytes << 20), str(tmp_path / "results")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "which needs more memory than the" in done.stdout
    assert not (tmp_path / "results").exists()
