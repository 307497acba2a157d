"""`bufferscope explore`: what the explorer's page gets, and how."""

import gzip
import json
import re
import signal
import tomllib
from base64 import urlsafe_b64decode
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection, HTTPMessage
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest
from laboratory import ROUTED, Answer, start

import bufferscope as bs
from bufferscope.report import explorer

Cli = Callable[..., Answer]


class Got(NamedTuple):
    """What the server answered."""

    status: int
    headers: HTTPMessage
    body: bytes


def _document(fragment: str) -> Any:
    name, _, packed = fragment.partition("=")
    assert name == "e"
    return json.loads(gzip.decompress(urlsafe_b64decode(packed + "=" * (-len(packed) % 4))))


@contextmanager
def _serving(directory: Path, *arguments: str) -> Iterator[Callable[[str], Got]]:
    """Gets what the command serves; it must end after Ctrl-C."""
    with start(["explore", *arguments, "--no-open"], directory) as process:
        assert process.stdout is not None
        address = urlsplit(process.stdout.readline().rpartition(" ")[2].strip())
        assert (address.hostname, address.path) == ("127.0.0.1", "/open")

        def get(path: str) -> Got:
            with closing(HTTPConnection("127.0.0.1", address.port or 0, timeout=30)) as connection:
                connection.request("GET", path)
                with connection.getresponse() as response:
                    return Got(response.status, response.headers, response.read())

        yield get
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
        assert process.returncode == 0
        assert "The explorer has ended." in err


def test_the_page_gets_the_experiment_in_the_fragment(tmp_path: Path) -> None:
    (tmp_path / "lab.toml").write_text(ROUTED, encoding="utf-8")
    chosen = ["lab.toml", "--set", "link.line.rate=2mbit", "--seed", "5"]
    with _serving(tmp_path, *chosen) as get:
        moved = get("/open")
        assert moved.status == 302
        path, _, fragment = moved.headers["Location"].partition("#")
        assert path == "/"
        answer = get("/")
        assert answer.body == explorer.page()
        assert "connect-src" not in answer.headers["Content-Security-Policy"]
        assert answer.headers["Content-Security-Policy"].startswith("default-src 'none'")
        assert get("/etc/passwd").status == 404
    document = _document(fragment)
    assert document == {"v": 1, "toml": ROUTED, "sets": ["link.line.rate=2mbit"], "point": 0, "seed": 5}


def test_without_an_experiment_the_page_opens_its_own() -> None:
    with explorer.Server(None, 0) as server:
        assert server.fragment == ""
        with pytest.raises(bs.InputError, match=r"--http-port \d+: .*in use"):
            explorer.Server(None, server.server_port)


def test_a_stored_run_is_opened_as_it_was_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "lab.toml"
    path.write_text(ROUTED + '\n[sweep]\n"link.line.queue.limit" = ["5p", "20p"]\n', encoding="utf-8")
    result = bs.run("lab.toml", ["link.line.rate=2mbit"], seed=4)
    opened = explorer.of_run(result.runs[1])
    assert (opened.point, opened.seed, opened.sets) == (1, 4, ("link.line.rate=2mbit",))
    assert tomllib.loads(opened.text)["sweep"]
    path.write_text(path.read_text(encoding="utf-8").replace("10ms", "11ms"), encoding="utf-8")
    with pytest.raises(bs.InputError, match="has changed since"):
        explorer.of_run(result.runs[1])
    path.unlink()
    with pytest.raises(bs.InputError, match="can't be read"):
        explorer.of_run(result.runs[1])


def test_what_cannot_be_opened_is_refused(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "lab.toml").write_text(ROUTED, encoding="utf-8")
    stored = tmp_path / "stored"
    stored.mkdir()
    for arguments, reason in [
        (["no-such"], "no-such"),
        (["--set", "duration=5s"], "name one"),
        (["--seed", "2"], "name one"),
        *((["stored", *change], "a stored run has its own") for change in (["--seed", "2"], ["--set", "duration=5s"])),
        (["lab.toml", "--http-port", "99999"], "65535"),
        (["lab.toml", "--set", "link.line.rate=0mbit"], "allowed: a rate from"),
    ]:
        answer = cli("explore", *arguments, "--no-open")
        assert answer.status == 2
        assert reason in answer.err


def test_a_port_that_is_taken_is_named_with_what_to_do(cli: Cli) -> None:
    with explorer.Server(None, 0) as server:
        answer = cli("explore", "--no-open", "--http-port", str(server.server_port))
    assert answer.status == 2
    assert re.search(r"--http-port \d+: Address already in use.*leave it out", answer.err, re.DOTALL)


def test_a_page_that_was_not_built_and_an_address_that_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    long = explorer.Opened("x", {"trace": "".join(map(str, range(100_000)))})
    with pytest.raises(bs.InputError, match="allowed: 100000"):
        long.fragment()
    explorer.page.cache_clear()
    monkeypatch.setattr(explorer, "PACKAGE", Path("/nowhere"))
    with pytest.raises(bs.EngineError, match="make explorer"):
        explorer.page()


def test_a_report_opens_its_experiments_in_the_explorer_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "routed.toml"
    path.write_text(ROUTED, encoding="utf-8")
    result = bs.run(path, ["link.access.delay=7ms"], out=tmp_path / "results")
    text = result.report(tmp_path / "report").read_text(encoding="utf-8")
    (address,) = re.findall(r'href="explorer\.html#([^"]+)"', text)
    assert (tmp_path / "report" / explorer.BESIDE).read_bytes() == explorer.page()
    document = _document(address)
    assert (document["toml"], document["sets"]) == (ROUTED, ["link.access.delay=7ms"])
    path.write_text(ROUTED.replace('"2s"', '"3s"'), encoding="utf-8")
    assert "explorer.html" not in result.report(tmp_path / "later").read_text(encoding="utf-8")
    assert not (tmp_path / "later" / explorer.BESIDE).exists()
