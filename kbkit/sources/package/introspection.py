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
from kbkit.runtime.processes import run_apart
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
            resolved = ((path, _resolve(path)) for path in sorted(self.paths, key=path_rank))
            objects = {path: value for path, value in resolved if value is not None}
            public = frozenset((*self.paths.values(), *map(_origin, objects.values())))
            inherited: set[str] = set()  # the class with the shortest path has inherited members
            return {
                path: list(_members(value, self.package, public, inherited))
                for path, value in objects.items()
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
    holder: Any, package: str, public: frozenset[str], seen: set[str], depth: int = _MAX_DEEP
) -> Iterator[Any]:
    """Yield the documented members of a module or class, except those of `seen` origins."""
    bases = holder.__mro__ if isinstance(holder, type) else ()
    for name in _names(holder):
        static, value = inspect.getattr_static(holder, name, None), _attribute(holder, name)
        owner = next((base for base in bases if name in vars(base)), holder)
        if owner is not holder and _origin(owner) in public:
            continue
        source = value if callable(value) else static
        docstring = _docstring(source)
        modules = (_attribute(each, "__module__") for each in (source, holder))
        module = next((each for each in modules if isinstance(each, str)), holder.__name__)
        if not docstring or module.partition(".")[0] != package:
            continue
        if (item := _new_object(holder, name, static, value)) is None:
            continue
        origin = _origin(value) if item.is_class else f"{_origin(owner)}.{name}"
        if not item.is_class and origin in seen:
            continue
        file, line = _place(source)
        item.docstring = griffe.Docstring(docstring, parent=item)
        item.lineno = line or None
        item.extra[KEY] = {"origin": origin, "file": file}
        if not item.is_class:
            seen.add(origin)
        elif depth:
            inner_seen = set() if _ACCESSOR in item.labels else seen
            for member in _members(value, package, public, inner_seen, depth - 1):
                item.set_member(member.name, member)
        yield item


def _names(holder: Any) -> list[str]:
    exports = getattr(holder, "__all__", None) if isinstance(holder, types.ModuleType) else None
    names = dir(holder) if exports is None else exports
    names = [name for name in names if isinstance(name, str) and not name.startswith("_")]
    if isinstance(holder, type):
        return names
    values = {name: _attribute(holder, name) for name in names}
    if exports is None:
        home = holder.__name__
        names = [name for name in names if _attribute(values[name], "__module__") == home]
    # `__all__` may be in any order; of several names, prefer a class's own
    return sorted(names, key=lambda name: (_attribute(values[name], "__name__") != name, name))


def _new_object(holder: Any, name: str, static: Any, value: Any) -> Any | None:
    """Return an object of a member's kind, without content; ``None`` if it is not one."""
    in_class = isinstance(holder, type)
    if isinstance(value, type):
        item = griffe.Class(name)
        if not in_class:
            return item
        if static is value:
            # a reference to a class that is defined elsewhere is not a member
            return item if value.__qualname__.endswith(f".{name}") else None
        item.labels.add(_ACCESSOR)
        return None if isinstance(static, property | types.MemberDescriptorType) else item
    if callable(value):
        return griffe.Function(name, parameters=griffe.Parameters(*_parameters(value)))
    if in_class and inspect.isdatadescriptor(static):
        attribute = griffe.Attribute(name)
        attribute.labels.add("property")
        return attribute
    return None


def _docstring(value: Any) -> str:
    docstring = _attribute(value, "__doc__")
    if not isinstance(docstring, str):
        return ""
    if not isinstance(value, type | property) and docstring == _attribute(type(value), "__doc__"):
        return ""  # inherited from its class
    return without_machine(inspect.cleandoc(docstring))


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
    with contextlib.suppress(Exception):
        text = without_machine(repr(value))
        if " at 0x" not in text and 0 < len(text) <= _MAX_DEFAULT_LENGTH:
            return text
    return "..."


def _place(value: Any) -> tuple[str, int]:
    with contextlib.suppress(Exception):
        function: Any = value.fget if isinstance(value, property) else value
        function = inspect.unwrap(function)
        if file := inspect.getsourcefile(function):
            code = getattr(function, "__code__", None)
            return file, code.co_firstlineno if code else inspect.getsourcelines(function)[1]
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


def target_of(member: Any | None) -> Any | None:
    if member is None or not member.is_alias:
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
        for member in members:
            origin, place = _origin_of(member), f"{path}.{member.name}"
            existing = target_of(item.members.get(member.name))
            if _ACCESSOR in member.labels:
                accessors[origin].append((place, member))
            elif item.is_class:
                _fill(item, [member])
            elif origin in paths or (existing is not None and existing.path in paths):
                _add_docstrings(existing, member)
            else:
                added.setdefault(origin, PublicObject(place, _object(root, member, item)))
    for places in accessors.values():
        place, member = _most_mentioned(places)
        added[f"{_origin_of(member)}()"] = PublicObject(
            place, _object(root, member, root), accessor=True
        )
    return sorted([*entries, *added.values()], key=lambda entry: entry.path)


def _origin_of(member: Any) -> str:
    return str(member.extra[KEY]["origin"])


def _introspect(package: str, paths: Mapping[str, str]) -> dict[str, list[Any]]:
    search_path = tuple(folder for folder in sys.path if folder)
    task = _Introspection(package, paths, search_path)
    try:
        answer: dict[str, list[Any]] | str = run_apart(task, stop=lambda: False)
    except OSError as error:
        raise SourceError(f"{package}: no process can be started to import it ({error})") from error
    if isinstance(answer, str):
        raise SourceError(
            f"{package}: {answer}. Install its dependencies, or leave `introspect` out: then only "
            "its source files are read"
        )
    return answer


def _fill(item: Any, members: Iterable[Any]) -> None:
    bases = bases_of(item)
    for member in members:
        inherited = (target_of(base.members.get(member.name)) for base in bases)
        if member.name in item.members:
            _add_docstrings(target_of(item.members[member.name]), member)
        # the member of a base is not repeated in its subclasses
        elif not any(each is not None and each.docstring for each in inherited):
            item.set_member(member.name, member)


def _add_docstrings(item: Any | None, member: Any) -> None:
    if item is None or item.is_module:
        return
    if item.docstring is None:
        item.docstring = griffe.Docstring(member.docstring.value, parent=item)
    if item.is_class:
        _fill(item, member.members.values())


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
