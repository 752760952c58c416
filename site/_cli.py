"""Generate the reference of commands from the signatures that typer reads."""

from __future__ import annotations

import inspect
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer
import typer.models
from _recipes import item, prose

import kbkit.cli
from kbkit.cli import MODULE_OF, load_commands

_SHARED_BY = 3
"""Commands that share an option before the reference describes it once."""
_UNITS = {str: "TEXT", int: "NUMBER", float: "NUMBER", Path: "PATH"}
"""Placeholders of option values, by type."""


def reference() -> str:
    """Return the reference of all commands in Markdown; shared options are described once."""
    app = kbkit.cli.app
    load_commands()
    assert app.registered_callback is not None
    commands = [("", command) for command in app.registered_commands]
    for group in app.registered_groups:
        inner = group.typer_instance
        commands += [(f"{group.name} ", command) for command in inner.registered_commands]
    parameters = {
        prefix + (command.name or command.callback.__name__.replace("_", "-")): (
            command.callback.__doc__,
            [each for each in _parameters(command.callback) if not each.is_json],
            any(each.is_json for each in _parameters(command.callback)),
        )
        for prefix, command in commands
        if command.callback is not None
    }
    order = list(MODULE_OF)
    names = sorted(parameters, key=lambda name: (" " in name, order.index(name.split()[0])))
    parameters = {name: parameters[name] for name in names}
    count = Counter(each for _, items, _ in parameters.values() for each in set(items))
    of_sources = {each for each in parameters["sources add"][1] if not each.argument}
    usual = {each.names: each for each, _ in reversed(count.most_common())}
    shared = [
        each for each in usual.values() if count[each] >= _SHARED_BY and each not in of_sources
    ]
    lines = ["## Options of every command", ""]
    lines += [each.item for each in _parameters(app.registered_callback.callback)]
    lines += ["", "## Shared arguments and options {#shared}", ""]
    lines += ["Commands that do not describe them use them like this:", ""]
    lines += [each.item for each in sorted(shared, key=lambda each: (each.option, each.names))]
    without = ", ".join(f"`{name}`" for name, (_, _, is_json) in parameters.items() if not is_json)
    lines.append(f"- `--json`: Print JSON with stable keys. Of all commands but {without}.")
    lines += ["", "## Options of sources {#source-options}", ""]
    lines += ["Of `kbkit new`, `kbkit add` and `kbkit sources add`:", ""]
    lines += [each.item for each in parameters["sources add"][1] if not each.argument]
    for name, (about, items, _) in parameters.items():
        usage = " ".join(["kbkit", name, *(each.usage for each in items if each.argument)])
        lines += ["", f"## {usage} {{#{name.replace(' ', '-')}}}", "", prose(about), ""]
        elsewhere = {*shared, *(of_sources if of_sources <= set(items) else ())}
        lines += dict.fromkeys(each.item for each in items if each not in elsewhere)
        if also := [each.shown_names for each in items if each.option and each in shared]:
            lines.append(f"- Also {', '.join(also)}.")
        if of_sources <= set(items):
            lines.append("- Also the [options of sources](#source-options).")
    return re.sub(r"\n{3,}", "\n\n", "\n".join([*lines, ""]))


@dataclass(frozen=True)
class Parameter:
    """An argument or option of a command.

    Attributes:
        names: All names of an option, or the name of an argument.
        unit: Placeholder of the value; empty for switches.
        default: Empty without a default.
    """

    argument: bool
    names: tuple[str, ...]
    unit: str
    repeated: bool
    required: bool
    default: str
    help: str

    @property
    def is_json(self) -> bool:
        return self.names == ("--json",)

    @property
    def option(self) -> bool:
        return not self.argument

    @property
    def shown_names(self) -> str:
        return ", ".join(f"`{name}`" for name in self.names)

    @property
    def item(self) -> str:
        """The list item that describes it."""
        unit = f" {self.unit}" if self.unit and not self.argument else ""
        facts = "required" if self.required and not self.argument else ""
        facts = f"default `{self.default}`" if self.default else facts
        note = " Repeatable." if self.repeated and "Repeatable" not in self.help else ""
        return item(self.shown_names + unit + (f" ({facts})" if facts else ""), self.help + note)

    @property
    def usage(self) -> str:
        """An argument in the usage line."""
        return self.names[0] if self.required else f"[{self.names[0]}]"


def _parameters(function: Any) -> list[Parameter]:
    hints = get_type_hints(function, include_extras=True)
    found = []
    for name, parameter in inspect.signature(function).parameters.items():
        if get_origin(hints[name]) is not Annotated:
            continue
        kind, info = get_args(hints[name])[:2]
        kinds = [part for part in get_args(kind) or (kind,) if part is not type(None)]
        repeated = get_origin(kinds[0]) is list
        value = get_args(kinds[0])[0] if repeated else kinds[0]
        argument = isinstance(info, typer.models.ArgumentInfo)
        shown_names = [
            text
            for text in (info.default, *(info.param_decls or ()))
            if isinstance(text, str) and text.startswith("-")
        ]
        option = "--" + name.replace("_", "-")
        if argument:
            shown_names = [info.metavar or name.upper()]
        elif not shown_names:
            shown_names = [option, option.replace("--", "--no-", 1)] if value is bool else [option]
        required = parameter.default is inspect.Parameter.empty
        shown = "" if required or parameter.default in (None, False, "") else parameter.default
        if shown is True:
            shown = "on"
        note = f" Environment: `{info.envvar}`." if info.envvar else ""
        found.append(
            Parameter(
                argument,
                tuple(shown_names),
                info.metavar or _UNITS.get(value, ""),
                repeated,
                required,
                str(shown),
                (info.help or "") + note,
            )
        )
    return found
