"""The options of the commands: one meaning for each name."""

from collections import defaultdict
from collections.abc import Iterator

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

from bufferscope.cli.app import app


def commands(group: TyperGroup) -> Iterator[TyperCommand]:
    """Every command that does something."""
    for command in group.commands.values():
        if isinstance(command, TyperGroup):
            yield from commands(command)
        elif isinstance(command, TyperCommand):
            yield command


def options() -> Iterator[tuple[str, TyperOption, str | None]]:
    """Every name of an option, the option, and its command."""
    for command in commands(typer.main.get_group(app)):
        for parameter in command.params:
            if isinstance(parameter, TyperOption):
                yield from ((name, parameter, command.name) for name in parameter.opts)


def test_an_option_takes_the_same_in_every_command() -> None:
    kinds: dict[str, dict[tuple[object, ...], list[str | None]]] = defaultdict(lambda: defaultdict(list))
    for name, option, command in options():
        kinds[name][option.metavar, option.is_flag].append(command)
    assert len(kinds) > 40
    assert {name: dict(different) for name, different in kinds.items() if len(different) > 1} == {}


def test_every_command_with_a_page_can_do_without_it() -> None:
    of = defaultdict(set)
    for name, _, command in options():
        of[name].add(command)
    assert of["--report"] == of["--no-report"] >= {"run", "reproduce", "choose", "size", "compare", "import", "inspect"}
