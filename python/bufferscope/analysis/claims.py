"""What documents say, beside what each engine measures."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bufferscope.engines import engine_of
from bufferscope.results.verdicts import Expectation, ExpectationResult, Verdict


def in_words(name: str) -> str:
    """An engine's name as a heading."""
    return engine_of(name).heading


@dataclass(frozen=True)
class DocumentStatement:
    """A statement of a document at one point."""

    by_engine: Mapping[str, ExpectationResult]
    """What each engine measured; the first engine is the one that was asked for first."""

    @property
    def first(self) -> ExpectationResult:
        """The first engine's measurement, or that of the first one that has the point."""
        return next((each for each in self.by_engine.values() if each.runs), next(iter(self.by_engine.values())))

    @property
    def expectation(self) -> Expectation:
        """What the document says."""
        return self.first.expectation

    @property
    def applies(self) -> bool:
        """Whether any engine's measurement can be compared with the statement."""
        return any(each.verdict is not Verdict.NOT_APPLICABLE for each in self.by_engine.values())

    @property
    def verdicts(self) -> dict[str, Verdict]:
        """The verdict of each engine whose measurement can be compared with the statement."""
        return {
            name: each.verdict for name, each in self.by_engine.items() if each.verdict is not Verdict.NOT_APPLICABLE
        }


def statements(evaluated: Iterable[ExpectationResult]) -> list[DocumentStatement]:
    """The expectations of one experiment, with the measurements of all engines together, in their order."""
    found: dict[object, dict[str, ExpectationResult]] = {}
    seen: Counter[object] = Counter()
    for each in evaluated:
        key = _key(each)
        seen[each.engine, key] += 1  # a file may say the same twice
        found.setdefault((key, seen[each.engine, key]), {})[each.engine] = each
    return [DocumentStatement(by_engine) for by_engine in found.values()]


def _key(evaluated: ExpectationResult) -> object:
    """What two engines' measurements of the same statement at the same point have in common."""
    expectation = evaluated.expectation
    return (
        expectation.subject,
        expectation.says,
        expectation.band,
        tuple(expectation.where.items()),
        tuple((expectation.relative_to or {}).items()),
        evaluated.position,
    )
