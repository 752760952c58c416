"""The public objects of a package, in griffe's trees: from its source files, or after import.

Some exist only after import: accessors (``Series.str`` of pandas), methods made by decorators or
loops, and compiled code. Importing runs the package's code, so it happens in another process, and
only if a recipe allows it.
"""

import contextlib
import importlib
import inspect
import logging
import re
import sys
import types
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import griffe

from kbkit.errors import SourceError
from kbkit.runtime.processes import Workers
from kbkit.sources import without_machine

_MAX_DEFAULT_LENGTH = 80
_MAX_DEEP = 2  # levels of class members: an accessor, and a class in it

KEY = "kbkit"  # in `extra` of an introspected object: its origin and its source file
_ACCESSOR = "accessor"  # label of a class that a descriptor returns for an attribute


@dataclass(frozen=True, slots=True)
class _Introspection:
    """Imports a package and inspects some of its modules and classes; a task of a worker.

    Attributes:
        paths: Public dotted paths of modules and classes, with their names in the source files.
    """

    package: str
    paths: Mapping[str, str]
    search_path: tuple[str, ...]
    seconds: float = 120.0

    def perform(self) -> dict[str, list[Any]] | str:
        sys.path[:] = list(dict.fromkeys((*sys.path, *self.search_path)))
        try:
            importlib.import_module(self.package)
            objects = {path: value for path in self.paths if (value := _resolve(path)) is not None}
            public = frozenset((*self.paths.values(), *map(_origin, objects.values())))
            return {
                path: list(_members(value, self.package, public)) for path, value in objects.items()
            }
        except BaseException as error:  # the package's code may raise anything
            return f"importing it failed: {type(error).__name__}: {error}"

    def broken(self, reason: str) -> str:
        return f"importing it failed: {reason}"


def _resolve(path: str) -> Any:
    first, *names = path.split(".")
    value = sys.modules.get(first)
    for i, name in enumerate(names, 2):
        module = sys.modules.get(".".join(path.split(".")[:i]))
        value = module if module is not None else _attribute(value, name)
    return value


def _attribute(holder: Any, name: str) -> Any:
    try:
        return getattr(holder, name, None)
    except Exception:  # descriptors of a package may do anything
        return None


def _members(
    holder: Any, package: str, public: frozenset[str], depth: int = _MAX_DEEP
) -> Iterator[Any]:
    for name in _names(holder):
        static = inspect.getattr_static(holder, name, None)
        value = _attribute(holder, name)
        owner = _definer(holder, name)
        if owner is not holder and _origin(owner) in public:
            continue
        kind = _kind(holder, name, static, value)
        source = static if kind == "property" else value
        docstring = _docstring(source)
        if not kind or not docstring or _module(source, holder).partition(".")[0] != package:
            continue
        item = _new_object(name, kind, value)
        item.docstring = griffe.Docstring(docstring, parent=item)
        file, line = _place(source)
        item.lineno = line or None
        origin = _origin(value) if item.is_class else f"{_origin(owner)}.{name}"
        item.extra[KEY] = {"origin": origin, "file": file}
        if item.is_class and depth:
            for member in _members(value, package, public, depth - 1):
                item.set_member(member.name, member)
        yield item


def _new_object(name: str, kind: str, value: Any) -> Any:
    if kind in ("class", "accessor"):
        item: Any = griffe.Class(name)
    elif kind == "property":
        item = griffe.Attribute(name)
    else:
        item = griffe.Function(name, parameters=griffe.Parameters(*_parameters(value)))
    if kind in ("property", "accessor"):
        item.labels.add(kind)
    return item


def _names(holder: Any) -> list[str]:
    exports = getattr(holder, "__all__", None) if isinstance(holder, types.ModuleType) else None
    if exports is not None:
        return [name for name in exports if isinstance(name, str) and not name.startswith("_")]
    names = [name for name in dir(holder) if not name.startswith("_")]
    if isinstance(holder, type):
        return names
    module = holder.__name__
    return [name for name in names if getattr(_attribute(holder, name), "__module__", "") == module]


def _definer(holder: Any, name: str) -> Any:
    bases = holder.__mro__ if isinstance(holder, type) else ()
    return next((base for base in bases if name in vars(base)), holder)


def _kind(holder: Any, name: str, static: Any, value: Any) -> str:
    if isinstance(value, type):
        if not isinstance(holder, type) or static is value:
            # a reference to a class that is defined elsewhere is not a member
            nested = not isinstance(holder, type) or value.__qualname__.endswith(f".{name}")
            return "class" if nested else ""
        return "" if isinstance(static, property | types.MemberDescriptorType) else "accessor"
    if isinstance(holder, type) and not callable(value):
        is_data = isinstance(static, property) or inspect.isdatadescriptor(static)
        return "property" if is_data else ""
    return "function" if callable(value) else ""


def _docstring(value: Any) -> str:
    docstring = _attribute(value, "__doc__")
    if not isinstance(docstring, str):
        return ""
    if not isinstance(value, type | property) and docstring == _attribute(type(value), "__doc__"):
        return ""  # inherited from its class
    return without_machine(inspect.cleandoc(docstring))


def _module(value: Any, holder: Any) -> str:
    """Return the module of an object; its holder's module if it names none."""
    for name in (_attribute(value, "__module__"), _attribute(holder, "__module__")):
        if isinstance(name, str):
            return name
    return str(getattr(holder, "__name__", ""))


def _origin(value: Any) -> str:
    name = _attribute(value, "__qualname__") or _attribute(value, "__name__") or ""
    if isinstance(value, types.ModuleType):
        return str(name)
    return f"{_attribute(value, '__module__') or ''}.{name}"


def _parameters(value: Any) -> Iterator[Any]:
    with contextlib.suppress(Exception):  # compiled code fails in several ways
        for param in inspect.signature(value).parameters.values():
            default = None if param.default is param.empty else _default(param.default)
            kind = griffe.ParameterKind(param.kind.description)
            yield griffe.Parameter(param.name, kind=kind, default=default)


def _default(value: Any) -> str:
    text = ""
    with contextlib.suppress(Exception):
        text = without_machine(repr(value))
    if " at 0x" in text or not text or len(text) > _MAX_DEFAULT_LENGTH:
        return "..."
    return text


def _place(value: Any) -> tuple[str, int]:
    if isinstance(value, property):
        value = value.fget
    with contextlib.suppress(Exception):
        value = inspect.unwrap(value)
        file = inspect.getsourcefile(value)
        if file is not None:
            code = getattr(value, "__code__", None)
            line = code.co_firstlineno if code else inspect.getsourcelines(value)[1]
            return file, int(line)
    return "", 0


_TESTS = frozenset({"tests", "test", "testing_data", "conftest", "_tests", "_testing"})


@dataclass(frozen=True, slots=True)
class PublicObject:
    """A public object by its shortest path; an `accessor` is only reached as an attribute."""

    path: str
    item: Any
    accessor: bool = False


def load_package(name: str) -> Any:
    """Load a package or module with griffe, from its source files."""

    class Finder(griffe.ModuleFinder):
        """Skips tests, which are most of the code in large packages."""

        def iter_submodules(self, path: Any, seen: Any = None) -> Iterator[Any]:
            for parts, file in super().iter_submodules(path, seen):
                if not any(part in _TESTS or part.startswith("test_") for part in parts):
                    yield parts, file

    # keeps griffe's warnings off the terminal
    logging.getLogger("griffe").addHandler(logging.NullHandler())
    loader = griffe.GriffeLoader(allow_inspection=False, store_source=False)
    loader.finder = Finder()
    top = name.partition(".")[0]
    try:
        package = loader.load(top, try_relative_path=False)
        root = package[name.partition(".")[2]] if "." in name else package
    except (ModuleNotFoundError, griffe.LoadingError) as error:
        raise SourceError(
            f"{name}: no Python package of this name with source files is installed here; "
            f"install it beside kbkit (pip install {top.replace('_', '-')}) or fix the name "
            "(it is the one that import statements use)"
        ) from error
    except KeyError:
        raise SourceError(f"{name}: {top} has no module of this name") from None
    if not root.is_module:
        raise SourceError(f"{name}: a {root.kind.value}, not a package or module")
    return root


def public_objects(root: Any, path: str) -> list[PublicObject]:
    best: dict[str, PublicObject] = {}
    pending = [PublicObject(path, root)]
    while pending:
        module = pending.pop()
        best.setdefault(module.item.path, module)
        for name, item in public_members(module.item):
            entry = PublicObject(f"{module.path}.{name}", item)
            previous = best.get(item.path)
            if previous is None or path_rank(entry.path) < path_rank(previous.path):
                best[item.path] = entry
                if item.is_module:
                    pending.append(entry)
    return sorted(best.values(), key=lambda entry: entry.path)


def path_rank(path: str) -> tuple[int, int, str]:
    """Sort key that prefers the shortest path."""
    return path.count("."), len(path), path


def public_members(module: Any) -> Iterator[tuple[str, Any]]:
    exports = _exports(module)
    top = module.path.partition(".")[0]
    members = module.members.items()
    modules = {name for name, member in members if not member.is_alias and member.is_module}
    # an __all__ that names submodules lists all public ones
    strict = exports is not None and bool(exports & modules)
    for name, member in members:
        if name.startswith("_"):
            continue
        item = target_of(member)
        if item is None or item.path.partition(".")[0] != top:
            continue
        if item.is_module:
            is_public = not member.is_alias and (not strict or name in (exports or ()))
        elif exports is not None:
            is_public = name in exports
        else:
            is_public = not member.is_alias or module.is_init_module
        if is_public and (item.is_module or item.is_class or item.is_function):
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
    except Exception:  # griffe raises several errors for unresolved aliases
        return None


def bases_of(item: Any) -> list[Any]:
    """Return the bases of a class inside the package, nearest first."""
    try:
        return list(item.mro())
    except Exception:  # bases outside the package
        return []


def public_bases(item: Any) -> list[Any]:
    exports = _exports(item.package)
    names = item.package.members if exports is None else exports
    return [base for base in bases_of(item) if base.name in names and base.name[0] != "_"]


def with_introspection(root: Any, entries: Sequence[PublicObject]) -> list[PublicObject]:
    """Import a package in another process, and add members and docstrings that its source lacks.

    The tree is changed in place. An accessor is named after the attribute that its docstrings
    mention most.
    """
    package = root.path.partition(".")[0]
    holders = {e.path: e for e in entries if e.item.is_module or e.item.is_class}
    members_of = _introspect(package, {path: e.item.path for path, e in holders.items()})
    paths = {entry.item.path for entry in entries}
    accessors: dict[str, list[tuple[str, Any]]] = defaultdict(list)
    added: dict[str, PublicObject] = {}
    for path, members in members_of.items():
        item = holders[path].item
        if item.is_class:
            fill(item, [member for member in members if _ACCESSOR not in member.labels])
            for member in members:
                if _ACCESSOR in member.labels:
                    accessors[_origin_of(member)].append((f"{path}.{member.name}", member))
            continue
        # `__all__` may be in any order; of several names, prefer a class's own
        for member in sorted(members, key=lambda each: (not _own_name(each), each.name)):
            existing = _member_of(item, member.name)
            if _origin_of(member) in paths or (existing is not None and existing.path in paths):
                _add_docstrings(existing, member)
                continue
            place = f"{path}.{member.name}"
            added.setdefault(_origin_of(member), PublicObject(place, _object(root, member, item)))
    for places in accessors.values():
        place, member = _most_mentioned(places)
        added[f"{_origin_of(member)}()"] = PublicObject(
            place, _object(root, member, root), accessor=True
        )
    return sorted([*entries, *added.values()], key=lambda entry: entry.path)


def _once_each(members_of: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
    """Map paths to members; inherited ones appear only in the class with the shortest path."""
    seen_origins: set[str] = set()

    def without_repeats(members: Iterable[Any]) -> Iterator[Any]:
        for member in members:
            if member.is_class and _ACCESSOR not in member.labels:
                inner = without_repeats(member.members.values())
                member.members = {each.name: each for each in inner}
            elif not member.is_class:
                if _origin_of(member) in seen_origins:
                    continue
                seen_origins.add(_origin_of(member))
            yield member

    paths = sorted(members_of, key=path_rank)
    return {path: list(without_repeats(members_of[path])) for path in paths}


def _origin_of(member: Any) -> str:
    return str(member.extra[KEY]["origin"])


def _own_name(member: Any) -> bool:
    return _origin_of(member).endswith(f".{member.name}")


def _introspect(package: str, paths: Mapping[str, str]) -> dict[str, list[Any]]:
    search_path = tuple(folder for folder in sys.path if folder)
    try:
        workers = Workers(1)
    except OSError as error:
        raise SourceError(f"{package}: no process can be started to import it ({error})") from error
    with contextlib.closing(workers):
        task = _Introspection(package, paths, search_path)
        answer: dict[str, list[Any]] | str = workers.submit(task).result()
    if isinstance(answer, str):
        raise SourceError(
            f"{package}: {answer}. Install its dependencies, or leave `introspect` out: then only "
            "its source files are read"
        )
    return _once_each(answer)


def fill(item: Any, members: Iterable[Any]) -> None:
    bases = bases_of(item)
    for member in members:
        if member.name in item.members:
            _add_docstrings(_member_of(item, member.name), member)
        # the member of a base is not repeated in its subclasses
        elif not any(getattr(_member_of(base, member.name), "docstring", None) for base in bases):
            item.set_member(member.name, member)


def _member_of(holder: Any, name: str) -> Any | None:
    existing = holder.members.get(name)
    return None if existing is None else target_of(existing)


def _add_docstrings(item: Any | None, member: Any) -> None:
    if item is None or item.is_module:
        return
    if item.docstring is None:
        item.docstring = griffe.Docstring(member.docstring.value, parent=item)
    if item.is_class:
        fill(item, member.members.values())


def _object(root: Any, member: Any, holder: Any) -> Any:
    existing = None
    with contextlib.suppress(Exception):  # griffe raises several errors for missing names
        existing = target_of(root.package[_origin_of(member).partition(".")[2]])
    if existing is None or existing.is_attribute:  # its source does not show that it can be called
        member.parent = holder
        return member
    _add_docstrings(existing, member)
    return existing


def _most_mentioned(places: Sequence[tuple[str, Any]]) -> tuple[str, Any]:
    member = places[0][1]
    text = " ".join(each.docstring.value for each in (member, *member.members.values()))
    words = Counter(re.findall(r"\b\w+\.\w+\b", text))

    def rank(place: tuple[str, Any]) -> tuple[int, tuple[int, int, str]]:
        return -words[".".join(place[0].split(".")[-2:])], path_rank(place[0])

    return min(places, key=rank)
