"""The public API of a package: its objects and their public paths."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kbkit.errors import SourceError

_TESTS = frozenset({"tests", "test", "testing_data", "conftest", "_tests", "_testing"})


@dataclass(frozen=True, slots=True)
class Entry:
    """A public object: the path that users write, and griffe's object.

    Attributes:
        accessor: Whether users only meet the class as an attribute of another.
    """

    path: str
    item: Any
    accessor: bool = False


def load_package(name: str) -> Any:
    """A package or module as griffe reads its source files."""
    import griffe

    class Finder(griffe.ModuleFinder):
        """Leaves tests out: in large packages they are most of the code."""

        def iter_submodules(self, path: Any, seen: Any = None) -> Iterator[Any]:
            for parts, file in super().iter_submodules(path, seen):
                if not any(part in _TESTS or part.startswith("test_") for part in parts):
                    yield parts, file

    # without a handler, griffe's notes on the package's code would go to the terminal
    logging.getLogger("griffe").addHandler(logging.NullHandler())
    loader = griffe.GriffeLoader(allow_inspection=False, store_source=False)
    loader.finder = Finder()
    top = name.partition(".")[0]
    try:
        package = loader.load(top)
        root = package[name.partition(".")[2]] if "." in name else package
    except (ModuleNotFoundError, griffe.LoadingError) as error:
        raise SourceError(
            f"{name}: no Python package of this name with source files is installed here; "
            f"install it beside kbkit (pip install {top.replace('_', '-')}) or mend the name "
            "(it is the one that import statements use)"
        ) from error
    except KeyError:
        raise SourceError(f"{name}: {top} has no module of this name") from None
    if not root.is_module:
        raise SourceError(f"{name}: a {root.kind.value}, not a package or module")
    return root


def public_objects(root: Any, path: str) -> list[Entry]:
    best: dict[str, Entry] = {}
    waiting = [Entry(path, root)]
    while waiting:
        module = waiting.pop()
        best.setdefault(module.item.path, module)
        for name, item in public_members(module.item):
            entry = Entry(f"{module.path}.{name}", item)
            known = best.get(item.path)
            if known is None or path_rank(entry.path) < path_rank(known.path):
                best[item.path] = entry
                if item.is_module:
                    waiting.append(entry)
    return sorted(best.values(), key=lambda entry: entry.path)


def path_rank(path: str) -> tuple[int, int, str]:
    """Sort key that prefers the shortest path."""
    return path.count("."), len(path), path


def public_members(module: Any) -> Iterator[tuple[str, Any]]:
    exports = _exports(module)
    top = module.path.partition(".")[0]
    modules = {name for name, member in module.members.items() if _is_module(member)}
    # an __all__ that names submodules names all that are public
    strict = exports is not None and bool(exports & modules)
    for name, member in module.members.items():
        if name.startswith("_"):
            continue
        item = target_of(member)
        if item is None or item.path.partition(".")[0] != top:
            continue
        if item.is_module:
            wanted = not member.is_alias and (not strict or name in (exports or ()))
        elif exports is not None:
            wanted = name in exports
        else:
            wanted = not member.is_alias or module.is_init_module
        if wanted and (item.is_module or item.is_class or item.is_function):
            yield name, item


def _exports(module: Any) -> set[str] | None:
    if module.exports is None:
        return None
    return {str(getattr(export, "name", export)) for export in module.exports}


def target_of(member: Any) -> Any | None:
    if not member.is_alias:
        return member
    try:
        return member.final_target
    except Exception:  # griffe has several errors for what cannot be followed
        return None


def _is_module(member: Any) -> bool:
    return not member.is_alias and bool(member.is_module)


def bases_of(item: Any) -> list[Any]:
    """The bases of a class that lie in the package, nearest first."""
    try:
        return list(item.mro())
    except Exception:  # bases outside of the package
        return []


def is_exported(item: Any) -> bool:
    root = item.package
    exports = _exports(root)
    return item.name in exports if exports is not None else item.name in root.members
