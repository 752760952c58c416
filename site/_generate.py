"""Writes the generated parts of the guides; run it after changing the schema or the commands.

``python site/_generate.py`` rewrites what lies between ``<!-- generated: NAME -->`` and
``<!-- end -->`` in the guides; with ``--check`` it only says whether something would change.
"""

from __future__ import annotations

import enum
import inspect
import re
import sys
import types
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import _mcp  # beside this file
import _routes
import typer
import typer.models

import kbkit.cli
import kbkit.errors
from kbkit import recipes
from kbkit.cli import MODULE_OF, load_commands
from kbkit.recipes import Spec
from kbkit.recipes.base import LanguageModelSpec, _Annotation, meanings
from kbkit.recipes.schema import _Embedding
from kbkit.recipes.sources import FetchSpec, SourceSpec, WebSpec
from kbkit.workflows.gallery import list_recipes

SITE = Path(__file__).parent
REGION = re.compile(r"(<!-- generated: ([a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)

SHARED: dict[type[Spec], str] = {
    WebSpec: "Sources of web pages",
    FetchSpec: "Sources that fetch",
    SourceSpec: "All sources",
    _Embedding: "All embeddings",
    _Annotation: "All annotations",
    LanguageModelSpec: "Language models",
}
"""Parts whose keys several others have; the reference has them once."""
SHARED_BY = 3
"""Commands that an option must have alike to be explained once."""
MODELS: tuple[type[Spec], ...] = (
    recipes.Recipe,
    recipes.CrawlSource,
    recipes.PageSource,
    recipes.MirrorSource,
    recipes.FilesSource,
    recipes.JsonlSource,
    recipes.ParquetSource,
    recipes.OpenApiSource,
    recipes.PackageSource,
    recipes.PluginSource,
    WebSpec,
    FetchSpec,
    SourceSpec,
    recipes.ChunkingSpec,
    recipes.AutoEmbedding,
    recipes.StaticEmbedding,
    recipes.MultilingualEmbedding,
    recipes.OnnxEmbedding,
    recipes.LlamaIndexEmbedding,
    recipes.PluginEmbedding,
    _Embedding,
    recipes.RetrievalSpec,
    recipes.PostprocessorSpec,
    recipes.ExpandSpec,
    recipes.RulesAnnotation,
    recipes.LlmAnnotation,
    recipes.PluginAnnotation,
    recipes.NoAnnotation,
    _Annotation,
    LanguageModelSpec,
    recipes.NameSpec,
    recipes.GraphSpec,
    recipes.LearningSpec,
    recipes.StorageSpec,
    recipes.SiteSpec,
    recipes.Question,
)
"""The parts of a recipe in the order of the reference."""


def kind_of(model: type[Spec]) -> str:
    """The `type` that tells a part from others that may stand in its place; ``""`` for none."""
    field = model.model_fields.get("type")
    return field.default if field and get_origin(field.annotation) is Literal else ""


def title(model: type[Spec]) -> str:
    """The heading of a part."""
    if model in SHARED:
        return SHARED[model]
    if tag := kind_of(model):
        part = next(
            part for part in ("Source", "Embedding", "Annotation") if part in model.__name__
        )
        return f"{part} `{tag}`"
    return re.sub(r"Spec$", "", model.__name__)


def anchor(model: type[Spec]) -> str:
    """The anchor of a part's heading."""
    return re.sub(r"[^a-z0-9]+", "-", title(model).casefold()).strip("-")


def type_name(annotation: Any) -> str:
    """A type in words, as Markdown for a table's cell."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return type_name(arguments[0])
    if origin in {Union, types.UnionType}:
        tagged = [part for part in arguments if isinstance(part, type) and issubclass(part, Spec)]
        if len(tagged) > 1:
            links = (f"[`{kind_of(part)}`](#{anchor(part)})" for part in tagged)
            return f"{title(tagged[0]).split()[0].lower()} {', '.join(links)}"
        return " or ".join(
            dict.fromkeys(type_name(part) for part in arguments if part is not type(None))
        )
    if origin is Literal:
        return ", ".join(f"`{value}`" for value in arguments)
    if origin is tuple:
        return f"list of {type_name(arguments[0])}".replace("list of source ", "list of ")
    if origin is dict:
        return "mapping"
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return ", ".join(f"`{member.value}`" for member in annotation)
    if isinstance(annotation, type) and issubclass(annotation, Spec):
        return f"[{title(annotation)}](#{anchor(annotation)})"
    return {str: "text", int: "integer", float: "number", bool: "boolean"}[annotation]


def default(value: Any) -> str:
    """A default as Markdown for a table's cell."""
    if value is None or value in ("", (), {}):
        return ""
    if isinstance(value, Spec):
        kind = getattr(value, "type", None)
        return f"`type: {kind}`" if kind else ""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{value}`"


def limits(metadata: list[Any]) -> str:
    """The bounds of a number or a list, in words."""
    bounds = {
        name: getattr(each, name)
        for each in metadata
        for name in ("gt", "ge", "lt", "le", "min_length")
        if getattr(each, name, None) is not None
    }
    if {"ge", "le"} <= bounds.keys():
        return f", {bounds['ge']} to {bounds['le']}"
    words = {"gt": "above", "ge": "at least", "lt": "below", "le": "at most"}
    return "".join(f", {words[name]} {bounds[name]}" for name in words if name in bounds)


def cell(text: str) -> str:
    """Prose as one line of a table."""
    return " ".join(text.split()).replace("|", "\\|")


def recipe_reference() -> str:
    """The reference of all keys of a recipe."""
    lines: list[str] = []
    for model in MODELS:
        own = inspect.get_annotations(model)
        shared = [base for base in model.__mro__[1:] if base in SHARED]
        elsewhere = {name for base in shared for name in inspect.get_annotations(base)}
        tag, fields = kind_of(model), model.model_fields
        order = sorted(
            fields.keys() - elsewhere - ({"type"} if tag else set()),
            key=lambda name: (
                not fields[name].is_required(),
                name not in own,
                list(fields).index(name),
            ),
        )
        about = _prose(model.__doc__)
        lines += [f"## {title(model)}", "", about, ""]
        lines += [_key(model, name) for name in order]
        nearest = [base for base in shared if not any(base in each.__mro__[1:] for each in shared)]
        if nearest:
            links = [f"[{title(base).lower()}](#{anchor(base)})" for base in nearest]
            lines.append(f"- Also the keys of {', '.join(links)}.")
        lines.append("")
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines))


def _key(model: type[Spec], name: str) -> str:
    """A key of a part, as an item of a list."""
    field = model.model_fields[name]
    value = type_name(field.annotation) + limits(field.metadata)
    if field.is_required():
        value += ", required"
    elif shown := default(field.get_default(call_default_factory=True, validated_data={})):
        value += f"; default {shown}"
    return item(f"`{name}` ({value})", meanings(model).get(name, ""))


def item(name: str, meaning: str) -> str:
    """An item of a list: a name and its meaning."""
    return f"- {name}: {' '.join(meaning.split())}" if meaning else f"- {name}"


def _prose(docstring: str | None) -> str:
    return "\n\n".join(" ".join(part.split()) for part in (docstring or "").split("\n\n"))


def cli_reference() -> str:
    """The reference of all commands, from the signatures that typer reads.

    What several commands have alike is explained once.
    """
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
        each for each in usual.values() if count[each] >= SHARED_BY and each not in of_sources
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
        lines += ["", f"## {usage} {{#{name.replace(' ', '-')}}}", "", _prose(about), ""]
        elsewhere = {*shared, *(of_sources if of_sources <= set(items) else ())}
        lines += dict.fromkeys(each.item for each in items if each not in elsewhere)
        if also := [each.spelled for each in items if each.option and each in shared]:
            lines.append(f"- Also {', '.join(also)}.")
        if of_sources <= set(items):
            lines.append("- Also the [options of sources](#source-options).")
    return re.sub(r"\n{3,}", "\n\n", "\n".join([*lines, ""]))


@dataclass(frozen=True)
class Parameter:
    """An argument or option of a command.

    Attributes:
        names: The spellings of an option, or the name of an argument.
        unit: What its value is; empty for switches.
        repeated: It may be given several times.
        required: There is no default.
        default: As text, empty where there is none to speak of.
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
        """It is `--json`, which the line of usage shows."""
        return self.names == ("--json",)

    @property
    def option(self) -> bool:
        """It is an option."""
        return not self.argument

    @property
    def spelled(self) -> str:
        """Its names, as Markdown."""
        return ", ".join(f"`{name}`" for name in self.names)

    @property
    def item(self) -> str:
        """It as an item of a list."""
        unit = f" {self.unit}" if self.unit and not self.argument else ""
        facts = "required" if self.required and not self.argument else ""
        facts = f"default `{self.default}`" if self.default else facts
        note = " Repeatable." if self.repeated and "Repeatable" not in self.help else ""
        return item(self.spelled + unit + (f" ({facts})" if facts else ""), self.help + note)

    @property
    def usage(self) -> str:
        """An argument as it stands in the usage line."""
        return self.names[0] if self.required else f"[{self.names[0]}]"


UNITS = {str: "TEXT", int: "NUMBER", float: "NUMBER", Path: "PATH"}
"""What the values of options are called."""


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
        spelled = [
            text
            for text in (info.default, *(info.param_decls or ()))
            if isinstance(text, str) and text.startswith("-")
        ]
        option = "--" + name.replace("_", "-")
        if argument:
            spelled = [info.metavar or name.upper()]
        elif not spelled:
            spelled = [option, option.replace("--", "--no-", 1)] if value is bool else [option]
        required = parameter.default is inspect.Parameter.empty
        shown = "" if required or parameter.default in (None, False, "") else parameter.default
        if shown is True:
            shown = "on"
        note = f" Environment: `{info.envvar}`." if info.envvar else ""
        found.append(
            Parameter(
                argument,
                tuple(spelled),
                info.metavar or UNITS.get(value, ""),
                repeated,
                required,
                str(shown),
                (info.help or "") + note,
            )
        )
    return found


def error_tree() -> str:
    """The tree of errors from the docstring that draws it."""
    tree = (kbkit.errors.__doc__ or "").split("::\n\n")[1].split("\n\n")[0]
    return f"```text\n{re.sub('(?m)^    ', '', tree)}\n```\n"


def exit_codes() -> str:
    """The exit codes from the docstring of the command line."""
    text = " ".join((kbkit.cli.__doc__ or "").split("Exit codes:")[1].split())
    pairs = [part.strip().split(" ", 1) for part in text.rstrip(".").split(";")]
    rows = [f"| {code} | {meaning} |" for code, meaning in pairs]
    return "\n".join(["| code | meaning |", "| --- | --- |", *rows, ""])


def gallery() -> str:
    """The recipes that come with kbkit, with what they cost and reach where they were run."""
    lines = ["| recipe | documents | seconds | MB | nDCG@10 | Hit@1 | run on |"]
    lines.append("| --- " * 7 + "|")
    abouts = []
    for recipe in list_recipes():
        address = recipe.address
        where = f"<{address}>" if address.startswith("http") else f"`{address}`"
        terms = f" License: {recipe.license}." if recipe.license else ""
        about = f"{recipe.about} Reads {where} (`{'`, `'.join(recipe.sources)}`).{terms}"
        abouts += ["", f"## {recipe.name}", "", about]
        if recipe.figures:
            keys = ("documents", "seconds", "megabytes", "ndcg", "hit1", "run")
            cells = (str(recipe.figures.get(key, "")) for key in keys)
            figures = re.sub(r"on Debian's copy \((.*)\)", r"\1", " | ".join(cells))
            lines.append(f"| [{recipe.name}](#{recipe.name}) | {figures} |")
    return "\n".join([*lines, *abouts, ""])


GENERATORS = {
    "gallery": gallery,
    "recipes": recipe_reference,
    "cli": cli_reference,
    "errors": error_tree,
    "exit-codes": exit_codes,
    "mcp-sets": _mcp.sets,
    "mcp-tools": _mcp.tools,
    "routes": _routes.routes,
}


def renew(text: str) -> str:
    """A guide with its generated parts made anew."""
    return REGION.sub(lambda found: f"{found[1]}\n{GENERATORS[found[2]]()}\n{found[3]}", text)


def main(arguments: list[str]) -> int:
    """Renew the guides, or check them.

    Returns:
        0, or 1 when ``--check`` finds a guide that is out of date.
    """
    check = "--check" in arguments
    stale = []
    for path in sorted(SITE.glob("*.md")):
        text = path.read_text(encoding="utf-8")
        renewed = renew(text)
        if renewed != text:
            stale.append(path.name)
            if not check:
                path.write_text(renewed, encoding="utf-8", newline="\n")
    if stale and check:
        sys.stderr.write(f"out of date: {', '.join(stale)}; run python site/_generate.py\n")
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
