"""The page on the Python package, from its docstrings and signatures."""

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, Literal, get_args, get_origin

import bufferscope as bs
from bufferscope import metrics
from bufferscope.analysis import explanation
from bufferscope.figures import FIGURES
from bufferscope.figures.charts_of import Charts
from bufferscope.model.experiment import Point
from bufferscope.running import stepping
from bufferscope.store.memory import MemoryRun
from bufferscope.studies import choice
from bufferscope.studies.comparison import comparing
from bufferscope.studies.sizing import equations, search, sizing
from bufferscope.studies.sizing.settings import QueueSetting
from docstrings import markdown, parsed
from writing import heading, table

Function = Callable[..., Any]

INTRODUCTION = """\
# Python: every function and class

This page lists all names of `import bufferscope as bs`, with types, units and errors. [From Python](../python.md) is an
introduction.

The name of a column, a metric or an attribute ends in its unit: `_ns`, `_ms`, `_s`, `_bytes`, `_bps`, `_mbit` (Mbit/s).
A value that is `None` or null does not exist or is not known; it never means 0. If an argument has a wrong type,
functions raise `InputError`, whose message names the argument, what was found and what is allowed.

"""
FUNCTIONS: tuple[Function, ...] = (
    bs.run,
    bs.load,
    bs.compare,
    bs.explain,
    bs.choose,
    bs.size,
    bs.fix,
    bs.model_line,
    bs.catalogue,
)
CLASSES: Mapping[str, tuple[type, ...]] = {
    "Results and runs": (bs.Result, bs.Run, MemoryRun, Charts),
    "A simulation in steps": (
        bs.Simulation, stepping.SimulationState, stepping.PortState, stepping.FlowState, stepping.SimulationTables,
    ),
    "Experiments": (bs.Experiment, Point),
    "Comparisons": (comparing.Comparison, comparing.PointComparison, comparing.Difference),
    "Explanations": (explanation.Explanation, explanation.Statement, explanation.Cause),
    "Choices": (choice.Choice, choice.MeasuredCandidate),
    "Cures": (bs.Advice, bs.Step, bs.ShaperRate, bs.LocatedQueue),
    "Models of lines": (
        bs.LineFit, bs.HeldPhase, bs.LineModel, bs.LoadOpening, bs.ModelledQueue, bs.MeasuredLine, bs.MeasuredDirection,
        bs.MeasuredPhase, bs.PhaseResult, bs.Prediction, bs.QueueEvidence, bs.ShapedLine,
    ),
    "Sizes": (sizing.Sizing, equations.EquationResult, search.SimulatedSizing, search.MeasuredQueue, QueueSetting),
}  # fmt: skip
METRICS: tuple[Function, ...] = tuple(
    getattr(metrics, name) for name in metrics.__all__ if inspect.isfunction(inspect.unwrap(getattr(metrics, name)))
)
OF_METRICS = (metrics.Metrics, metrics.Value, metrics.Estimate, metrics.Definition)
ERRORS = (
    bs.InputError, bs.ExperimentError, bs.StoreError, bs.EngineError,
    metrics.MetricError, metrics.UnknownMetricError, metrics.NotMeasuredError, bs.figures.NoDataError,
)  # fmt: skip


_ALIASES = [(name, getattr(bs, name)) for name in bs.__all__ if get_origin(getattr(bs, name)) is Literal]
"""The names of types that annotations show as their strings; a name is shorter."""


def page() -> str:
    """The whole page."""
    text = INTRODUCTION + heading(2, "Functions") + "".join(_function("bs", each) for each in FUNCTIONS)
    for title, classes in CLASSES.items():
        text += heading(2, title) + "".join(map(_class, classes))
    text += _metrics() + _figures()
    text += heading(2, "Reports") + _function("bs.report", bs.report.build)
    text += heading(2, "Errors") + table(["error", "is a", "meaning"], map(_error, ERRORS))
    return (text + _others() + _closed_sets() + _values()).rstrip() + "\n"


def methods(owner: type) -> Iterator[Function]:
    """The public methods of a class, those that it inherits from this package included; its constructor first."""
    for name, member in inspect.getmembers(owner):
        function = inspect.unwrap(getattr(member, "__func__", member))
        ours = inspect.isfunction(function) and function.__module__.startswith("bufferscope")
        if ours and (name == "__init__" or not name.startswith("_")) and not _is_made(owner, name):
            yield member


def attributes(owner: type) -> dict[str, str]:
    """The public attributes and properties of a class with their meanings."""
    found: dict[str, str] = {}
    for base in reversed(owner.__mro__):
        if base.__module__.startswith("bufferscope"):
            found |= _written(base)
            for name, member in vars(base).items():
                if isinstance(member, property | cached_property) and not name.startswith("_"):
                    found[name] = inspect.getdoc(member) or found.get(name, "")
    return found


def parameters(function: Function) -> dict[str, inspect.Parameter]:
    """The parameters that a caller gives, by name; `*` is part of a name."""
    given = inspect.signature(function).parameters.values()
    starred: dict[Any, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    return {starred.get(each.kind, "") + each.name: each for each in given if each.name not in ("self", "cls")}


def _is_made(owner: type, name: str) -> bool:
    """Whether a decorator created the method, as the constructor of a dataclass."""
    return name == "__init__" and hasattr(owner, "__dataclass_fields__")


def _written(owner: type) -> dict[str, str]:
    """The attributes that the source of a class assigns, with the texts below the assignments."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(owner))).body
    assert isinstance(tree, ast.ClassDef)
    bodies = [tree.body, *(each.body for each in tree.body if isinstance(each, ast.FunctionDef))]
    found = {}
    for body in bodies:
        for statement, after in zip(body, [*body[1:], None], strict=True):
            if (name := _assigned(statement)) and not name.startswith("_"):
                text = ast.literal_eval(after.value) if _is_text(after) else ""  # type: ignore[union-attr]
                if body is tree.body or text:
                    found[name] = inspect.cleandoc(text)
    return found


def _assigned(statement: ast.stmt) -> str:
    target = statement.targets[0] if isinstance(statement, ast.Assign) else getattr(statement, "target", None)
    if isinstance(target, ast.Attribute):
        return target.attr
    return target.id if isinstance(target, ast.Name) else ""


def _is_text(statement: ast.stmt | None) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(getattr(statement.value, "value", None), str)


def _function(owner: str, function: Function, level: int = 3) -> str:
    name = f"{owner}.{function.__name__}".removesuffix(".__init__")
    given = parameters(function)
    shown = "\n".join(f"    {line}," for line in _arguments(given))
    returned = _type(inspect.signature(function).return_annotation)
    signature = f"{name}(\n{shown}\n) -> {returned}" if given else f"{name}() -> {returned}"
    types = {each.name: _type(each.annotation) for each in given.values()}
    defaults = {
        written: repr(each.default) for written, each in given.items() if each.default is not inspect.Parameter.empty
    }
    body = markdown(parsed(function), types, defaults)
    return f"{heading(level, f'`{name}`')}```text\n{signature}\n```\n\n{body}"


def _arguments(given: Mapping[str, inspect.Parameter]) -> Iterator[str]:
    """The parameters of a signature, one per line, with the star before those that must be named."""
    starred = False
    for written, each in given.items():
        if each.kind is inspect.Parameter.KEYWORD_ONLY and not starred:
            if not any(name.startswith("*") for name in given):
                yield "*"
            starred = True
        default = "" if each.default is inspect.Parameter.empty else f"={each.default!r}"
        yield f"{written}{default}"


def _class(owner: type) -> str:
    name = owner.__name__
    public = f"bs.{name}" if name in bs.__all__ else name
    text = heading(3, f"`{public}`") + markdown(parsed(owner), {}, {})
    if rows := [[f"`{each}`", meaning] for each, meaning in attributes(owner).items()]:
        text += table(["attribute", "meaning"], rows)
    for method in methods(owner):
        if method.__name__ != "__init__" or name in bs.__all__:
            text += _function(name, method, level=4)
    return text


def _metrics() -> str:
    text = heading(2, "Metrics") + "Functions of `bs.metrics`. [Metrics](metrics.md) lists what is measured.\n\n"
    return text + "".join(_function("bs.metrics", each) for each in METRICS) + "".join(map(_class, OF_METRICS))


def _figures() -> str:
    rows = ([f"`bs.figures.{name}`", parsed(each).summary.partition("\n\n")[0]] for name, each in FIGURES.items())
    return (
        heading(2, "Figures")
        + "Each figure is a function of `bs.figures` that takes a result and returns an Altair chart, or raises "
        "`bs.figures.NoDataError` if the records hold no data for it. [The gallery](../gallery.md) shows them all.\n\n"
        + table(["figure", "what it shows"], rows)
        + _function("bs.figures", bs.figures.draw)
    )


def _error(error: type) -> list[str]:
    public = f"bs.{error.__name__}" if error.__name__ in bs.__all__ else f"{error.__name__}"
    return [f"`{public}`", f"`{error.__bases__[0].__name__}`", parsed(error).summary]


def others() -> dict[str, type]:
    """The public classes that have no section of their own, by name."""
    shown = {each.__name__ for group in CLASSES.values() for each in group}
    public = {name: getattr(bs, name) for name in bs.__all__ if name not in shown}
    return {name: each for name, each in public.items() if inspect.isclass(each) and not issubclass(each, Exception)}


def _others() -> str:
    rows = ([f"`bs.{name}`", parsed(each).summary.partition("\n\n")[0]] for name, each in others().items())
    return (
        heading(2, "Other classes")
        + "What else attributes and methods return, and what arguments may be. The source documents their attributes."
        "\n\n" + table(["class", "meaning"], rows)
    )


def closed_sets() -> dict[str, tuple[str, ...]]:
    """The public types of strings of which there are only some, by name."""
    public = {name: getattr(bs, name) for name in bs.__all__}
    return {name: get_args(each) for name, each in public.items() if get_origin(each) is Literal}


def _closed_sets() -> str:
    rows = ([f"`bs.{name}`", ", ".join(f"`{word!r}`" for word in words)] for name, words in closed_sets().items())
    return (
        heading(2, "Strings of which there are only some")
        + "Types for annotations; another string raises `InputError`.\n\n"
        + table(["type", "strings"], rows)
    )


def _values() -> str:
    columns = ([f"`{name}`", ", ".join(f"`{column}`" for column in listed)] for name, listed in bs.TABLES.items())
    return (
        heading(2, "Values")
        + "`bs.__version__` is the version as text. `bs.TABLES` has the columns of each table of the records, by the "
        "table's name ([Records](../records.md) says what they mean):\n\n" + table(["table", "columns"], columns)
    )


def _type(annotation: object) -> str:
    """An annotation as the source has it, without the names of modules."""
    for name, each in _ALIASES:
        if annotation == each:
            return name
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    for name, each in _ALIASES:
        text = text.replace(inspect.formatannotation(each), name)
    text = re.sub(r"\b(?:[a-z_]+\.)+(?=[A-Z])", "", text)
    return text.replace("'", "").replace('"', "")
