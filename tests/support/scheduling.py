"""How pytest-xdist distributes the tests: each process gets the next test or the next group."""

from collections.abc import Callable

import pytest
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]  # it has no types


class Scheduling(LoadScopeScheduling):  # type: ignore[misc]  # its base has no types
    """Groups by a function of a test's name, and runs no test again that ended its process.

    In version 3.8, pytest-xdist's own groups have no effect with pytest 9.2, because it lacks the attribute for them,
    and `LoadScopeScheduling` gives a test that ends its process to the next one, until no more may be started.
    """

    def __init__(self, config: pytest.Config, log: object, group: Callable[[str], str]) -> None:
        super().__init__(config, log)
        self._split_scope = group

    def schedule(self) -> None:
        """Distribute the tests. A process runs its last test only once it is shut down; until then it expects more."""
        super().schedule()
        for node in self.nodes:
            self._reschedule(node)

    def remove_node(self, node: object) -> str | None:
        """The test that ended the process, if one did; the others of its groups go to other processes."""
        groups = self.assigned_work[node]
        ended = next(((tests, test) for tests in groups.values() for test, done in tests.items() if not done), None)
        if ended is not None:
            tests, test = ended
            tests[test] = True
        for name in [name for name, tests in groups.items() if all(tests.values())]:
            del groups[name]
        super().remove_node(node)
        return None if ended is None else test
