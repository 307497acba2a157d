"""What determines a run on an engine: its scenario and its seed."""

import hashlib
import json

from bufferscope.model.scenario import Scenario

LARGEST_SEED = 2**63 - 1


def scenario_digest(scenario: Scenario) -> str:
    """A string that is the same for equal scenarios."""
    return hashlib.sha256(json.dumps(scenario, sort_keys=True).encode()).hexdigest()
