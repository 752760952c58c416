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
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import _mcp  # beside this file
import _routes
import typer
import typer.models
from pydantic_core import PydanticUndefined

import kbkit.cli
import kbkit.errors
from kbkit import recipes
from kbkit.cli import load_commands
from kbkit.recipes import Spec, golden_questions, load_recipe
from kbkit.recipes.base import meanings
from kbkit.recipes.sources import FetchSpec, SourceSpec, WebSpec
from kbkit.workflows.gallery import list_recipes

SITE = Path(__file__).parent
REGION = re.compile(r"(<!-- generated: ([a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)

SHARED: dict[type[Spec], str] = {
    WebSpec: "Sources of web pages",
    FetchSpec: "Sources that fetch",
    SourceSpec: "All sources",
}
"""Parts whose keys several sources have; the reference has them once."""
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
    *SHARED,
    recipes.ChunkingSpec,
    recipes.AutoEmbedding,
    recipes.StaticEmbedding,
    recipes.MultilingualEmbedding,
    recipes.OnnxEmbedding,
    recipes.LlamaIndexEmbedding,
    recipes.PluginEmbedding,
    recipes.RetrievalSpec,
    recipes.PostprocessorSpec,
    recipes.ExpandSpec,
    recipes.RulesAnnotation,
    recipes.LlmAnnotation,
    recipes.PluginAnnotation,
    recipes.NoAnnotation,
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
        return " or ".join(
            dict.fromkeys(type_name(part) for part in arguments if part is not type(None))
        )
    if origin is Literal:
        return ", ".join(f"`{value}`" for value in arguments)
    if origin is tuple:
        return f"list of {type_name(arguments[0])}"
    if origin is dict:
        return "mapping"
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return ", ".join(f"`{member.value}`" for member in annotation)
    if isinstance(annotation, type) and issubclass(annotation, Spec):
        return f"[{title(annotation)}](#{anchor(annotation)})"
    return {str: "text", int: "whole number", float: "number", bool: "true or false"}[annotation]


def default(value: Any) -> str:
    """A default as Markdown for a table's cell."""
    if value is PydanticUndefined:
        return "required"
    if value is None or value in ("", (), {}):
        return ""
    if isinstance(value, Spec):
        kind = getattr(value, "type", None)
        return f"`type: {kind}`" if kind else "defaults"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{value}`"


def limits(metadata: list[Any]) -> str:
    """The bounds of a number or a list, in words."""
    words = {
        "gt": "more than",
        "ge": "at least",
        "lt": "less than",
        "le": "at most",
        "min_length": "at least",
    }
    found = [
        f"{word} {getattr(item, name)}"
        for item in metadata
        for name, word in words.items()
        if getattr(item, name, None) is not None
    ]
    return f" ({', '.join(found)})" if found else ""


def cell(text: str) -> str:
    """Prose as one line of a table."""
    return " ".join(text.split()).replace("|", "\\|")


def recipe_reference() -> str:
    """The reference of all keys of a recipe."""
    lines: list[str] = []
    for model in MODELS:
        lines += [f"## {title(model)} {{#{anchor(model)}}}", "", _prose(model.__doc__), ""]
        lines += ["| key | value | default | meaning |", "| --- | --- | --- | --- |"]
        own = inspect.get_annotations(model)
        shared = [base for base in model.__mro__[1:] if base in SHARED]
        elsewhere = {name for base in shared for name in inspect.get_annotations(base)}
        tag, fields = kind_of(model), model.model_fields
        order = sorted(
            fields.keys() - elsewhere,
            key=lambda name: (
                name != "type",
                not fields[name].is_required(),
                name not in own,
                list(fields).index(name),
            ),
        )
        for name in order:
            field, is_tag = fields[name], bool(tag) and name == "type"
            if is_tag:
                meaning, value = "Which kind this is.", f"`{tag}`"
            else:
                meaning = meanings(model).get(name, "")
                value = type_name(field.annotation) + limits(field.metadata)
            start = (
                PydanticUndefined
                if field.is_required()
                else field.get_default(call_default_factory=True, validated_data={})
            )
            shown = "required" if is_tag else default(start)
            lines.append(f"| `{name}` | {cell(value)} | {shown} | {cell(meaning)} |")
        lines.append("")
        if shared:
            links = [f"[{title(base).lower()}](#{anchor(base)})" for base in shared]
            lines += [f"It also has the keys of {', '.join(links)}.", ""]
    return "\n".join(lines)


def _prose(docstring: str | None) -> str:
    return "\n\n".join(" ".join(part.split()) for part in (docstring or "").split("\n\n"))


def cli_reference() -> str:
    """The reference of all commands, from the signatures that typer reads."""
    app = kbkit.cli.app
    load_commands()
    callback = app.registered_callback
    lines = ["## Options of every command", ""]
    if callback is not None and callback.callback is not None:
        lines += _table(callback.callback)
    commands = [("", command) for command in app.registered_commands]
    for group in app.registered_groups:
        inner = group.typer_instance
        commands += [(f"{group.name} ", command) for command in inner.registered_commands]
    for prefix, command in commands:
        assert command.callback is not None
        name = prefix + (command.name or command.callback.__name__.replace("_", "-"))
        items = _parameters(command.callback)
        usage = " ".join(["kbkit", name, *(item.usage for item in items if item.argument)])
        usage += (
            " [OPTIONS]" if any(not item.argument and not item.is_json for item in items) else ""
        )
        usage += " [--json]" if any(item.is_json for item in items) else ""
        lines += [
            f"## kbkit {name} {{#{name.replace(' ', '-')}}}",
            "",
            _prose(command.callback.__doc__),
            "",
        ]
        lines += ["```text", usage, "```", "", *_table(command.callback)]
    return "\n".join(lines)


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
    def usage(self) -> str:
        """An argument as it stands in the usage line."""
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
                info.metavar or "",
                repeated,
                required,
                str(shown),
                (info.help or "") + note,
            )
        )
    return found


def _table(function: Any) -> list[str]:
    rows = []
    for item in _parameters(function):
        if item.is_json:
            continue
        names = ", ".join(f"`{name}`" for name in item.names)
        unit = f" {item.unit}" if item.unit and not item.argument else ""
        value = "required" if item.required else f"`{item.default}`" if item.default else ""
        note = " Repeatable." if item.repeated and "Repeatable" not in item.help else ""
        rows.append(f"| {names}{unit} | {value} | {cell(item.help)}{note} |")
    if not rows:
        return []
    return ["| option | default | meaning |", "| --- | --- | --- |", *rows, ""]


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


NOTEBOOKS = {
    "crawl": "08-a-web-site",
    "files": "05-refresh-and-publish",
    "pdf": "04-files-pdfs-openapi",
    "openapi": "04-files-pdfs-openapi",
    "package": "09-a-python-package",
}
"""The notebook of each kind of source."""


def gallery() -> str:
    """The recipes that come with kbkit, with what they cost and reach where they were run."""
    found = list_recipes()
    lines = ["| recipe | documents | seconds | MB | nDCG@10 | Hit@1 | run |"]
    lines += ["| --- | --- | --- | --- | --- | --- | --- |"]
    for recipe in found:
        keys = ("documents", "seconds", "megabytes", "ndcg", "hit1")
        figures = " | ".join(str(recipe.figures.get(key, "")) for key in keys)
        run = recipe.figures.get("run", "not run here")
        lines.append(f"| [{recipe.name}](#{recipe.name}) | {figures} | {cell(run)} |")
    for recipe in found:
        loaded = load_recipe(recipe.path)
        kind = "pdf" if recipe.name == "pdf" else recipe.sources[0]
        book = NOTEBOOKS[kind]
        lines += ["", f"## {recipe.name} {{#{recipe.name}}}", "", recipe.about, ""]
        address = recipe.address
        where = f"<{address}>" if address.startswith("http") else f"`{address}`"
        terms = f" License of what it reads: {recipe.license}." if recipe.license else ""
        kinds = ", ".join(f"`{kind}`" for kind in recipe.sources)
        lines += [f"Reads {where} ({kinds}).{terms}", ""]
        lines += ["```console", f"$ kbkit recipes copy {recipe.name}"]
        lines += [f"$ kbkit build {recipe.name}.yaml", "```", "", "Golden questions:", ""]
        for question in golden_questions(loaded):
            pages = ", ".join(f"`{page}`" for page in question.relevant)
            lines.append(f"- {question.question} ({pages})")
        lines += ["", f"[A notebook for this kind of source](notebooks/{book}.md)"]
    return "\n".join([*lines, ""])


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
