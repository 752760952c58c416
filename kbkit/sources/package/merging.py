"""Merge a package's introspected members into its source's API."""

from __future__ import annotations

import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kbkit.errors import SourceError
from kbkit.runtime.processes import Workers
from kbkit.sources.package.introspection import (
    Introspection,
    Member,
    PublicObject,
    bases_of,
    path_rank,
    target_of,
)

FILE = "file"  # key in ``extra`` of an introspected object: its source file, or ``""``

_EXTRA = "kbkit"


def with_introspection(root: Any, entries: Sequence[PublicObject]) -> list[PublicObject]:
    """Import a package in another process, and add members and docstrings that its source lacks.

    The tree is changed in place. An accessor is named by the attribute that its docstrings mention
    most.
    """
    package = root.path.partition(".")[0]
    holders = {e.path: e for e in entries if e.item.is_module or e.item.is_class}
    members_of = _once_each(
        _introspect(package, {path: e.item.path for path, e in holders.items()})
    )
    paths = {entry.item.path for entry in entries}
    accessors: dict[str, list[tuple[str, Member]]] = defaultdict(list)
    added: dict[str, PublicObject] = {}
    for path, members in members_of.items():
        item = holders[path].item
        if item.is_class:
            fill(item, [member for member in members if member.kind != "accessor"])
            for member in members:
                if member.kind == "accessor":
                    accessors[member.origin].append((f"{path}.{member.name}", member))
            continue
        for member in members:
            existing = _member_of(item, member.name)
            if member.origin in paths or (existing is not None and existing.path in paths):
                _add_docstrings(existing, member)
                continue
            place = f"{path}.{member.name}"
            added.setdefault(member.origin, PublicObject(place, _object(root, member, item)))
    for places in accessors.values():
        place, member = _most_mentioned(places)
        added[f"{member.origin}()"] = PublicObject(
            place, _object(root, member, root), accessor=True
        )
    return sorted([*entries, *added.values()], key=lambda entry: entry.path)


def _once_each(members_of: Mapping[str, Sequence[Member]]) -> dict[str, list[Member]]:
    """Map paths to members; inherited ones appear only in the class with the shortest path."""
    written: set[str] = set()

    def without_written(members: Iterable[Member]) -> Iterator[Member]:
        for member in members:
            if member.kind == "accessor":
                yield member
            elif member.kind == "class":
                yield replace(member, members=tuple(without_written(member.members)))
            elif member.origin not in written:
                written.add(member.origin)
                yield member

    return {
        path: list(without_written(members_of[path])) for path in sorted(members_of, key=path_rank)
    }


def source_file(item: Any) -> str | None:
    """Return the source file of an introspected object; ``None`` for other objects."""
    file: str | None = item.extra.get(_EXTRA, {}).get(FILE)
    return file


def _introspect(package: str, paths: Mapping[str, str]) -> dict[str, tuple[Member, ...]]:
    search_path = tuple(folder for folder in sys.path if folder)
    try:
        workers = Workers(1)
    except OSError as error:
        raise SourceError(f"{package}: no process can be started to import it ({error})") from error
    try:
        task = Introspection(package, paths, search_path)
        answer: dict[str, tuple[Member, ...]] | str = workers.submit(task).result()
    finally:
        workers.close()
    if isinstance(answer, str):
        raise SourceError(
            f"{package}: {answer}. Install its dependencies, or leave `introspect` out: then only "
            "its source files are read"
        )
    return answer


def fill(item: Any, members: Iterable[Member]) -> None:
    bases = bases_of(item)
    for member in members:
        if member.name in item.members:
            _add_docstrings(_member_of(item, member.name), member)
        # the member of a base is not repeated in its subclasses
        elif not any(_is_described(_member_of(base, member.name)) for base in bases):
            item.set_member(member.name, _new_object(member, item))


def _is_described(item: Any | None) -> bool:
    return item is not None and item.docstring is not None


def _member_of(holder: Any, name: str) -> Any | None:
    existing = holder.members.get(name)
    return None if existing is None else target_of(existing)


def _add_docstrings(item: Any | None, member: Member) -> None:
    import griffe

    if item is None or item.is_module:
        return
    if item.docstring is None:
        item.docstring = griffe.Docstring(member.docstring, parent=item)
    if item.is_class:
        fill(item, member.members)


def _object(root: Any, member: Member, holder: Any) -> Any:
    existing = _in_tree(root.package, member.origin)
    if existing is None or existing.is_attribute:  # its source does not show that it can be called
        return _new_object(member, holder)
    _add_docstrings(existing, member)
    return existing


def _in_tree(package: Any, origin: str) -> Any | None:
    try:
        existing = package[origin.partition(".")[2]]
        return existing.final_target if existing.is_alias else existing
    except Exception:  # griffe raises several errors for missing and unresolved names
        return None


def _new_object(member: Member, holder: Any) -> Any:
    import griffe

    name, line = member.name, member.line or None
    item: Any
    if member.kind in ("class", "accessor"):
        item = griffe.Class(name, lineno=line, parent=holder)
        fill(item, member.members)
    elif member.kind == "property":
        item = griffe.Attribute(name, lineno=line, parent=holder)
        item.labels.add("property")
    else:
        parameters = (
            griffe.Parameter(each.name, kind=griffe.ParameterKind(each.kind), default=each.default)
            for each in member.parameters or ()
        )
        item = griffe.Function(
            name, lineno=line, parent=holder, parameters=griffe.Parameters(*parameters)
        )
    item.docstring = griffe.Docstring(member.docstring, parent=item)
    item.extra[_EXTRA][FILE] = member.file
    return item


def _most_mentioned(places: Sequence[tuple[str, Member]]) -> tuple[str, Member]:
    member = places[0][1]
    text = " ".join((member.docstring, *(each.docstring for each in member.members)))
    words = Counter(re.findall(r"\b\w+\.\w+\b", text))

    def rank(place: tuple[str, Member]) -> tuple[int, tuple[int, int, str]]:
        return -words[".".join(place[0].split(".")[-2:])], path_rank(place[0])

    return min(places, key=rank)
