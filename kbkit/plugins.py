"""Plugins from entry points, and third-party classes that a recipe names by import path."""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any, TypeVar

from kbkit.errors import ImpossibleError, KbkitError
from kbkit.models.documents import variable, variables

T = TypeVar("T")

SECRET_NAME = re.compile(r"key|token|secret|password|credential|auth", re.IGNORECASE)
"""Names of arguments and variables whose values are secret."""

_SECRET_VALUE = re.compile(r"\b(?:sk|pk|hf|gsk|pa)[-_][\w*-]{4,}|(?i:bearer)\s+\S+")
_IN_ADDRESS = re.compile(
    r"(?<=://)[^\s/@]+@|(?<=[?&;])[^\s=&#?]*(?:key|token|secret|password|"
    r"signature)[^\s=&#]*=[^\s&#]+",
    re.IGNORECASE,
)
_MIN_SECRET = 6  # shorter values would blot out ordinary words


def open_class(
    path: str,
    arguments: Mapping[str, Any],
    parent: type[T],
    *,
    kind: str,
    name: str,
    error: type[KbkitError],
    install: str,
    check: str,
) -> T:
    arguments = {key: _given(name, key, value, error) for key, value in arguments.items()}
    module_name, _, class_name = path.replace(":", ".").rpartition(".")
    try:
        module = importlib.import_module(module_name)
    except Exception as problem:  # importing runs a third party's code
        raise error(
            f"{name}: cannot import {module_name} ({safe_message(problem, arguments)}); {install}"
        ) from problem
    found = getattr(module, class_name, None)
    if not (isinstance(found, type) and issubclass(found, parent)):
        raise error(
            f"{name}: {class_name} in {module_name} is not a {kind}; name a class that derives "
            f"from {parent.__name__}"
        )
    try:
        return found(**arguments)
    # Constructors check keys, read files, open connections. "from None" since a traceback of
    # theirs may show a key.
    except Exception as problem:
        raise error(
            f"{name}: cannot be opened ({safe_message(problem, arguments)}); check {check}"
        ) from None


def is_there(path: str) -> bool:
    """Whether the module of a class for `open_class` is installed; imports nothing."""
    module_name, _, _ = path.replace(":", ".").rpartition(".")
    name, places = "", None
    for part in module_name.split("."):
        name = f"{name}.{part}".lstrip(".")
        if loaded := sys.modules.get(name):
            places = getattr(loaded, "__path__", ())
            continue
        finders = (finder.find_spec(name, places) for finder in sys.meta_path)
        spec = next(filter(None, finders), None)
        if spec is None:
            return False
        places = spec.submodule_search_locations or ()
    return True


def _given(name: str, key: str, value: Any, error: type[KbkitError]) -> Any:
    if not (referred := variable(value)):
        return value
    if referred not in os.environ:
        raise error(f"{name}: {key}: the environment has no {referred}; set it")
    return os.environ[referred]


def without_secrets(text: str) -> str:
    for secret in _secrets({}):
        text = text.replace(secret, "***")
    return _IN_ADDRESS.sub("***", _SECRET_VALUE.sub("***", text))


def safe_message(error: Exception, arguments: Mapping[str, Any]) -> str:
    text = " ".join(f"{type(error).__name__}: {error}".split())
    for secret in _secrets(arguments):
        text = text.replace(secret, "***")
    return _SECRET_VALUE.sub("***", text)[:300]


def _secrets(arguments: Mapping[str, Any]) -> list[str]:
    """Values that must not show in messages: from the arguments and from the environment."""
    values = {os.environ.get(name, "") for name in variables(arguments)}
    values |= {str(value) for name, value in arguments.items() if SECRET_NAME.search(name)}
    values |= {value for name, value in os.environ.items() if SECRET_NAME.search(name)}
    return sorted((value for value in values if len(value) >= _MIN_SECRET), key=len, reverse=True)


SOURCES = "kbkit.sources"
"""Group of classes and functions that make a `kbkit.sources.base.SourceReader`."""

EMBEDDERS = "kbkit.embedders"
"""Group of classes and functions that make a `kbkit.embedding.base.Embedder`."""

ANNOTATORS = "kbkit.annotators"
"""Group of classes and functions that make a `kbkit.annotation.base.Annotator`."""


@dataclass(frozen=True, slots=True)
class Plugin:
    """An object that an installed package provides.

    Attributes:
        group: `SOURCES`, `EMBEDDERS` or `ANNOTATORS`.
        target: Location as ``module:attribute``.
    """

    name: str
    group: str
    target: str
    distribution: str


def installed(group: str) -> list[Plugin]:
    """List plugins by name, without importing them."""
    found: dict[tuple[str, str], Plugin] = {}
    for point in entry_points(group=group):
        found.setdefault(
            (point.name, point.value), Plugin(point.name, group, point.value, _maker(point))
        )
    return sorted(found.values(), key=lambda plugin: (plugin.name, plugin.target))


def make(group: str, name: str, options: Mapping[str, Any], parts: tuple[str, ...]) -> Any:
    point = find(group, name)
    kind = _kind(group)
    where = f"the {kind} {name!r} of {_maker(point)}"
    try:
        made = point.load()(**options)
    except KbkitError:
        raise
    except Exception as error:  # whatever the code of others raises is their message to the user
        detail = safe_message(error, options)
        raise ImpossibleError(f"{where} cannot be made with these options ({detail})") from error
    missing = [part for part in parts if not hasattr(made, part)]
    if missing:
        raise ImpossibleError(f"{where} is no {kind}: it lacks {', '.join(missing)}")
    return made


def find(group: str, name: str) -> EntryPoint:
    """Find a plugin, without importing it."""
    kind = _kind(group)
    points = {point.value: point for point in entry_points(group=group, name=name)}
    if not points:
        names = ", ".join(plugin.name for plugin in installed(group)) or "none"
        raise ImpossibleError(
            f"{name!r}: no installed package brings {_a(kind)} of that name (there are: {names})"
        )
    if len(points) > 1:
        makers = " and ".join(sorted(_maker(point) for point in points.values()))
        raise ImpossibleError(
            f"{name!r}: {makers} both bring {_a(kind)} of that name; uninstall one"
        )
    (point,) = points.values()
    return point


def _kind(group: str) -> str:
    return group.removeprefix("kbkit.").removesuffix("s")


def _maker(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist else "an unknown package"


def _a(kind: str) -> str:
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"
