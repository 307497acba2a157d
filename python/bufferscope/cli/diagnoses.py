"""The output of `doctor`, for people and for programs."""

from bufferscope.cli.tables import print_rows
from bufferscope.engines.doctor.findings import EngineDiagnosis


def document(diagnosis: EngineDiagnosis) -> dict[str, object]:
    """An engine's diagnosis for `--json`."""
    return {
        "engine": diagnosis.engine,
        "about": diagnosis.about,
        "state": diagnosis.state,
        "checks": [{"what": c.what, "state": c.state, "details": c.details} for c in diagnosis.checks],
        "install": diagnosis.install,
        "install_by_hand": list(diagnosis.by_hand),
    }


def print_diagnosis(diagnosis: EngineDiagnosis) -> None:
    """An engine's checks as a table, and below it, on a line to copy, the command that installs what is missing."""
    title = f"\nengine {diagnosis.engine}: {diagnosis.state}"
    print_rows(title, ("", "State", "Details"), [(c.what, c.state, c.details) for c in diagnosis.checks])
    if diagnosis.by_hand:
        print(f"Install with this system's package manager (Debian's names): {', '.join(diagnosis.by_hand)}")
    if diagnosis.install:
        print(f"To install what is missing:\n\n    {diagnosis.install}\n")
