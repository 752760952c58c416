"""Plugins: sources, embedders and annotators from entry points of installed packages.

A package declares them in its ``pyproject.toml``::

    [project.entry-points."kbkit.sources"]
    wiki = "my_package.wiki:WikiReader"

A recipe then has ``type: plugin``, ``name: wiki`` and ``options``, which become keyword arguments
of the class or function. A package is imported on first use only.
"""

from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from kbkit.errors import ImpossibleError, KbkitError
from kbkit.runtime.third_party import safe_message

SOURCES = "kbkit.sources"
"""Group of factories of a `kbkit.sources.SourceReader`."""
EMBEDDERS = "kbkit.embedders"
"""Group of factories of a `kbkit.embedding.Embedder`."""
ANNOTATORS = "kbkit.annotators"
"""Group of factories of a `kbkit.annotation.Annotator`."""


def make(group: str, name: str, options: Mapping[str, Any], parts: tuple[str, ...]) -> Any:
    point, kind = find(group, name), _kind(group)
    label = f"the {kind} {name!r} of {_maker(point)}"
    try:
        instance = point.load()(**options)
    except KbkitError:
        raise
    except Exception as error:  # third-party code may raise anything
        detail = safe_message(error, options)
        raise ImpossibleError(f"{label} cannot be created with these options ({detail})") from error
    absent = [part for part in parts if not hasattr(instance, part)]
    if absent:
        raise ImpossibleError(f"{label} is not {_a(kind)}: it lacks {', '.join(absent)}")
    return instance


def find(group: str, name: str) -> EntryPoint:
    """Find a plugin, without importing it."""
    kind = _kind(group)
    points = {point.value: point for point in entry_points(group=group, name=name)}
    if not points:
        names = ", ".join(sorted(entry_points(group=group).names)) or "none"
        raise ImpossibleError(
            f"{name!r}: no installed package provides {_a(kind)} of that name (there are: {names})"
        )
    if len(points) > 1:
        makers = " and ".join(sorted(_maker(point) for point in points.values()))
        raise ImpossibleError(
            f"{name!r}: {makers} both provide {_a(kind)} of that name; uninstall one"
        )
    (point,) = points.values()
    return point


def _kind(group: str) -> str:
    return group.removeprefix("kbkit.").removesuffix("s")


def _maker(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist else "an unknown package"


def _a(kind: str) -> str:
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"
