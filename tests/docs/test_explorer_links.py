"""The pictures of docs/ open in the explorer with the parameters of their runs."""

import gzip
import json
import re
from base64 import urlsafe_b64decode
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import explorers

DOCS = Path(__file__).parents[2] / "docs"
MEASURED = {"gallery/live.svg"}
"""Pictures of measurements on a real network."""


def _conf() -> Any:
    spec = spec_from_file_location("conf", DOCS / "conf.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_picture_of_a_simulation_has_a_link_that_opens_its_experiment() -> None:
    conf = _conf()
    requests: dict[str, explorers.Request] = {}
    without = set()
    for page in sorted(DOCS.glob("**/*.md")):
        source = [page.read_text(encoding="utf-8")]
        pictures = re.findall(r"\]\((?:\.\./)*pictures/([^)]+\.svg)\)", source[0])
        conf._linked(None, page.stem, source)
        for name in pictures:
            shown = rf"!\[[^]]*\]\(pictures/{re.escape(name)}\)\n\n<p><a href=\"explore\.html#e=([\w-]+)\""
            found = re.search(shown, source[0])
            if found is None:
                without.add(name)
                continue
            packed = urlsafe_b64decode(found[1] + "=" * (-len(found[1]) % 4))
            requests[name] = json.loads(gzip.decompress(packed)) | {"only_open": True}
    assert without == MEASURED
    assert len(requests) > 30
    titles = {}
    for name, answer in zip(requests, explorers.in_node(requests.values()), strict=True):
        assert "refused" not in answer, (name, answer)
        titles[name] = answer["opened"]["title"]
        assert answer["opened"]["point"] == requests[name]["point"]
    assert titles["mitigate-rtt.svg"].startswith("Mitigating bufferbloat")
    queue = json.dumps(requests["queue-sizes.svg"])
    assert "tcp.gso_max_segs=1" in queue, "the picture's own overrides"
