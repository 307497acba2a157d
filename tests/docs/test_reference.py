"""What `make reference` writes is what the code says: `docs/reference`, and modules that are made from it."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_what_is_made_from_the_code_is_current() -> None:
    check = [sys.executable, str(ROOT / "scripts" / "reference"), "--check"]
    done = subprocess.run(check, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
