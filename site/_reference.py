"""MkDocs hook that adds the pages of the Python API, one for each room.

Public are the exports of `ROOTS` and the classes of kbkit in public signatures; griffe finds them
without running the code. mkdocstrings renders each where it is defined. A public name without a
docstring fails the build.
"""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cache
from typing import TYPE_CHECKING

import griffe
from mkdocs.exceptions import PluginError

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

ROOTS = ("kbkit", "kbkit.models", "kbkit.recipes", "kbkit.panels", "kbkit.testing", "kbkit.errors")
"""Modules whose public names are for users."""
FOLDER = "api"
TITLE = "Python API"


@cache
def package() -> griffe.Module:
    """Return kbkit as griffe parses it."""
    found = griffe.load("kbkit", resolve_aliases=True)
    assert isinstance(found, griffe.Module)
    return found


@cache
def public() -> dict[str, griffe.Object]:
    """Return public classes, functions and values by the path of their definition.

    Raises:
        PluginError: One of them or of their public members lacks a docstring.
    """
    waiting = [item for root in ROOTS for item in exported(root)]
    found: dict[str, griffe.Object] = {}
    bare: list[str] = []
    while waiting:
        item = waiting.pop()
        if item.path in found or any(part.startswith("_") for part in item.path.split(".")):
            continue
        found[item.path] = item
        bare += [part.path for part in (item, *parts(item)) if needs_docstring(part)]
        waiting += [owner for part in (item, *parts(item)) for owner in named_by(part)]
    if bare:
        raise PluginError(f"without a docstring: {', '.join(sorted(bare))}")
    return dict(sorted(found.items()))


def exported(root: str) -> list[griffe.Object]:
    """Return the exports of a module: its ``__all__``, its stub's imports or its definitions."""
    module = package()[root.removeprefix("kbkit.")] if root != "kbkit" else package()
    names = module.exports or [
        name
        for name, member in module.members.items()
        if (module.imports.get(name, "").startswith(f"{root}.") and name != "lazy_names")
        or (
            root != "kbkit"
            and not (name.startswith("_") or member.is_alias)
            and (member.is_class or member.is_function)
        )
    ]
    return [target(module[str(name)]) for name in names]


def target(item: griffe.Object | griffe.Alias) -> griffe.Object:
    """Return the definition of a name."""
    return item.final_target if isinstance(item, griffe.Alias) else item


def parts(item: griffe.Object) -> list[griffe.Object]:
    """Return the public members of a class, with inherited ones."""
    if not isinstance(item, griffe.Class):
        return []
    return [target(member) for name, member in item.all_members.items() if not name.startswith("_")]


def needs_docstring(item: griffe.Object) -> bool:
    """Return whether a docstring is missing; classes may describe their attributes."""
    property_ = isinstance(item, griffe.Attribute) and "property" in item.labels
    described = isinstance(item, griffe.Attribute) and not property_ and item.parent is not None
    return not item.has_docstring and not (described and item.parent.is_class)


def named_by(item: griffe.Object) -> list[griffe.Object]:
    """Return the classes of kbkit in a signature."""
    if isinstance(item, griffe.Function):
        annotations = [item.returns, *(parameter.annotation for parameter in item.parameters)]
    elif isinstance(item, griffe.Attribute):
        annotations = [item.annotation]
    else:
        annotations = []
    paths = {
        name.canonical_path
        for annotation in annotations
        if isinstance(annotation, griffe.Expr)
        for name in annotation.iterate(flat=True)
        if isinstance(name, griffe.ExprName)
    }
    found = []
    for path in paths:
        if path.startswith("kbkit."):
            one = target(package()[path.removeprefix("kbkit.")])
            if one.is_class:
                found.append(one)
    return found


def pages() -> dict[str, str]:
    """Return each page's name and Markdown."""
    rooms: defaultdict[str, list[griffe.Object]] = defaultdict(list)
    for path, item in public().items():
        rooms[path.split(".")[1] if path.count(".") > 1 else ""].append(item)
    top = index() + described(rooms.pop("", []))
    return {
        "index.md": top,
        **{
            f"{room}.md": f"# kbkit.{room}\n\n{summary(package()[room])}\n\n{described(items)}"
            for room, items in sorted(rooms.items())
        },
    }


def described(items: list[griffe.Object]) -> str:
    """Return directives for mkdocstrings: classes first, then functions, then values."""
    order = sorted(items, key=lambda item: (item.is_attribute, item.is_function, item.name.lower()))
    return "".join(f"::: {item.path}\n\n" for item in order)


def index() -> str:
    """Return the start page: names of ``import kbkit``, and links to other pages."""
    lines = [f"# {TITLE}", "", summary(package()), "", "| name | description |", "| --- | --- |"]
    for item in sorted(exported("kbkit"), key=lambda item: item.name.lower()):
        lines.append(f"| [`kbkit.{item.name}`][{item.path}] | {summary(item)} |")
    others = "\n".join(f"- [`{root}`]({root.split('.')[1]}.md)" for root in ROOTS[1:])
    lines += ["", "Further modules:", "", others, "", ""]
    return "\n".join(lines)


def summary(item: griffe.Object | griffe.Alias) -> str:
    """Return the first paragraph of a docstring in one line."""
    text = item.docstring.value if item.docstring else ""
    line = " ".join(text.split("\n\n")[0].split())
    return re.sub(r"(?<!\\)\|", r"\\|", line)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Add the pages to the navigation."""
    for entry in config.nav or []:
        if isinstance(entry, dict) and TITLE in entry:
            entry[TITLE] = [f"{FOLDER}/{name}" for name in pages()]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages."""
    from mkdocs.structure.files import File

    for name, text in pages().items():
        files.append(File.generated(config, f"{FOLDER}/{name}", content=text))
    return files
