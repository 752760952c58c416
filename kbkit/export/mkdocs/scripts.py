"""Scripts and styles of exported sites, as files with names that say what they hold.

They are kept as modules. Where a site has no server, and in the workers of some browsers, modules
cannot be loaded, so what belongs together goes into one classic script.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache
from pathlib import Path

_ASSETS = Path(__file__).parents[1] / "assets"
_IMPORT = re.compile(r'^import \{([^}]*)\} from "\./(\w+)\.js";[^\n]*\n', re.MULTILINE)
_EXPORT = re.compile(r"^export \{([^}]*)\};\n", re.MULTILINE)
_COMMENT = re.compile(
    r"^[ \t]*(?:/\*\*(?:(?!\*/).)*\*/[ \t]*|//[^\n]*)\n", re.MULTILINE | re.DOTALL
)
_STYLE_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_INDENTED = re.compile(r"^ +", re.MULTILINE)
_SPACE = re.compile(r"\s+")

_MODULE = "module_"  # a module may export something of its own name
_ENTRIES = {
    "engine": "service",
    "annotations": "annotations",
    "passage": "passage",
    "graph": "graphpage",
}
"""Scripts that are made of several modules, and the module that needs the others."""
_PLAIN = ("boot", "worker", "page", "missing", "reading", "contents")
"""Scripts that are one file."""


@cache
def scripts() -> dict[str, tuple[str, bytes]]:
    """Each script, and the style of pages: the name of its file, and what it holds."""
    texts = {f"{name}.js": bundle(entry) for name, entry in _ENTRIES.items()}
    texts |= {
        f"{name}.js": _INDENTED.sub("", _COMMENT.sub("", _read(f"{name}.js"))) for name in _PLAIN
    }
    texts["pages.css"] = page_style()
    texts["graph.css"] = _compact("graph.css") + _compact("graphpage.css")
    return {name: _hashed(name, text.encode()) for name, text in texts.items()}


def write_scripts(folder: Path) -> None:
    """Write all of them into a folder of a site."""
    folder.mkdir(parents=True, exist_ok=True)
    for file, data in scripts().values():
        (folder / file).write_bytes(data)


@cache
def page_style() -> str:
    """How exported pages look beyond the theme."""
    return _compact("pages.css")


@cache
def search_style() -> str:
    """How forms and results look, for the head of the pages that have them."""
    return _read("search.css")


def bundle(entry: str) -> str:
    """A module and what it imports as one classic script.

    It sets ``kbkit`` to what the module exports, if it exports anything; the annotations, which
    the engine loads, set ``kbkitAnnotations``.

    Args:
        entry: Name of the module.
    """
    parts = [_as_function(name) for name in _dependencies(entry, [])]
    if _EXPORT.search(_read(f"{entry}.js")):
        name = "kbkitAnnotations" if entry == "annotations" else "kbkit"
        parts.append(f"globalThis.{name} = {_MODULE}{entry};\n")
    return _INDENTED.sub("", "(() => {\n" + "".join(parts) + "})();\n")


def _dependencies(name: str, before: list[str]) -> list[str]:
    """Modules that a module needs, and itself, each behind those that it needs."""
    for _, needed in _IMPORT.findall(_read(f"{name}.js")):
        if needed not in before:
            _dependencies(needed, before)
    before.append(name)
    return before


def _as_function(name: str) -> str:
    """A module as a function that gives its exports."""
    text = _COMMENT.sub("", _read(f"{name}.js"))
    exported: list[str] = _EXPORT.findall(text)
    text = _IMPORT.sub(lambda found: f"const {{{found[1]}}} = {_MODULE}{found[2]};\n", text)
    text = _EXPORT.sub("", text)
    return f"const {_MODULE}{name} = (() => {{\n{text}return {{{', '.join(exported)}}};\n}})();\n"


def _compact(name: str) -> str:
    """A style without comments, on a line."""
    return _SPACE.sub(" ", _STYLE_COMMENT.sub("", _read(name)))


def _read(name: str) -> str:
    return (_ASSETS / name).read_text(encoding="utf-8")


def _hashed(name: str, data: bytes) -> tuple[str, bytes]:
    stem, _, ending = name.partition(".")
    return f"{stem}.{hashlib.blake2b(data, digest_size=5).hexdigest()}.{ending}", data
