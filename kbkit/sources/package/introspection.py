"""Find members of a package that exist only after import.

Examples are accessors (``Series.str`` of pandas), methods made by decorators or loops, and compiled
code. Importing runs the package's code, so it happens in another process, and only if a recipe
allows it.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import logging
import sys
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from kbkit.errors import SourceError
from kbkit.sources import without_machine

_MAX_DEFAULT_LENGTH = 80
_MAX_DEEP = 2  # levels of class members: an accessor, and a class in it

Kind = Literal["class", "function", "property", "accessor"]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter: name, kind as `inspect.Parameter` describes it, default as code."""

    name: str
    kind: str
    default: str | None


@dataclass(frozen=True, slots=True)
class Member:
    """A documented object.

    Attributes:
        kind: An accessor is a class that a descriptor returns for an attribute of another class.
        parameters: ``None`` if unknown.
        origin: Defining module and qualified name, perhaps of a base class.
        file: Source file; ``""`` if compiled.
        line: First line, from 1; 0 if unknown.
    """

    name: str
    kind: Kind
    docstring: str
    parameters: tuple[Parameter, ...] | None
    origin: str
    file: str
    line: int
    members: tuple[Member, ...] = ()


@dataclass(frozen=True, slots=True)
class Introspection:
    """Imports a package and inspects some of its modules and classes; a task of a worker.

    Attributes:
        paths: Public dotted paths of modules and classes, with their names in the source files.
    """

    package: str
    paths: Mapping[str, str]
    search_path: tuple[str, ...]
    seconds: float = 120.0

    def perform(self) -> dict[str, tuple[Member, ...]] | str:
        sys.path[:] = list(dict.fromkeys((*sys.path, *self.search_path)))
        try:
            importlib.import_module(self.package)
            objects = {path: value for path in self.paths if (value := _resolve(path)) is not None}
            public = frozenset((*self.paths.values(), *map(_origin, objects.values())))
            return {
                path: tuple(_members(value, self.package, public))
                for path, value in objects.items()
            }
        except BaseException as error:  # the package's code may raise anything
            return f"importing it failed: {type(error).__name__}: {error}"

    def broken(self, reason: str) -> str:
        return f"importing it failed: {reason}"


def _resolve(path: str) -> Any:
    first, *rest = path.split(".")
    value = sys.modules.get(first)
    for i, name in enumerate(rest, 2):
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
) -> Iterator[Member]:
    for name in _names(holder):
        static = inspect.getattr_static(holder, name, None)
        value = _attribute(holder, name)
        owner = _definer(holder, name)
        if owner is not holder and _origin(owner) in public:
            continue
        kind = _kind(holder, name, static, value)
        source = static if kind == "property" else value
        docstring = _docstring(source)
        if kind is None or not docstring or _module(source, holder).partition(".")[0] != package:
            continue
        inner = kind in ("class", "accessor")
        file, line = _place(source)
        yield Member(
            name=name,
            kind=kind,
            docstring=docstring,
            parameters=None if kind in ("property", "accessor") else _parameters(value),
            origin=_origin(value) if inner else f"{_origin(owner)}.{name}",
            file=file,
            line=line,
            members=tuple(_members(value, package, public, depth - 1)) if inner and depth else (),
        )


def _names(holder: Any) -> list[str]:
    exports = getattr(holder, "__all__", None) if isinstance(holder, types.ModuleType) else None
    if exports is not None:
        return [name for name in exports if isinstance(name, str) and not name.startswith("_")]
    names = [name for name in dir(holder) if not name.startswith("_")]
    if isinstance(holder, type):
        return names
    own = holder.__name__
    return [name for name in names if getattr(_attribute(holder, name), "__module__", "") == own]


def _definer(holder: Any, name: str) -> Any:
    bases = holder.__mro__ if isinstance(holder, type) else ()
    return next((base for base in bases if name in vars(base)), holder)


def _kind(holder: Any, name: str, static: Any, value: Any) -> Kind | None:
    if isinstance(value, type):
        if not isinstance(holder, type) or static is value:
            # a reference to a class that is defined elsewhere is not a member
            nested = not isinstance(holder, type) or value.__qualname__.endswith(f".{name}")
            return "class" if nested else None
        return None if isinstance(static, property | types.MemberDescriptorType) else "accessor"
    if isinstance(holder, type) and not callable(value):
        is_data = isinstance(static, property) or inspect.isdatadescriptor(static)
        return "property" if is_data else None
    return "function" if callable(value) else None


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


def _parameters(value: Any) -> tuple[Parameter, ...] | None:
    try:
        declared = inspect.signature(value).parameters.values()
    except Exception:  # compiled code fails in several ways
        return None
    return tuple(
        Parameter(
            parameter.name,
            parameter.kind.description,
            None if parameter.default is parameter.empty else _default(parameter.default),
        )
        for parameter in declared
    )


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
    import griffe

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


def public_objects(root: Any, path: str) -> list[PublicObject]:
    best: dict[str, PublicObject] = {}
    waiting = [PublicObject(path, root)]
    while waiting:
        module = waiting.pop()
        best.setdefault(module.item.path, module)
        for name, item in public_members(module.item):
            entry = PublicObject(f"{module.path}.{name}", item)
            previous = best.get(item.path)
            if previous is None or path_rank(entry.path) < path_rank(previous.path):
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
    # an __all__ that names submodules lists all public ones
    strict = exports is not None and bool(exports & modules)
    for name, member in module.members.items():
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


def _is_module(member: Any) -> bool:
    return not member.is_alias and bool(member.is_module)


def bases_of(item: Any) -> list[Any]:
    """Return the bases of a class inside the package, nearest first."""
    try:
        return list(item.mro())
    except Exception:  # bases outside the package
        return []


def is_exported(item: Any) -> bool:
    root = item.package
    exports = _exports(root)
    return item.name in exports if exports is not None else item.name in root.members
