"""The head of an exported page: policy, style and description."""

from __future__ import annotations

import base64
import hashlib
import html
import re
from collections.abc import Iterable
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
"""Scripts bundled from several modules, by entry module."""
_PLAIN = ("boot", "worker", "page", "missing", "reading", "contents")
"""Scripts that are one file."""


@cache
def scripts() -> dict[str, tuple[str, bytes]]:
    texts = {f"{name}.js": bundle(entry) for name, entry in _ENTRIES.items()}
    texts |= {
        f"{name}.js": _INDENTED.sub("", _COMMENT.sub("", _read(f"{name}.js"))) for name in _PLAIN
    }
    texts["pages.css"] = page_style()
    texts["graph.css"] = _compact("graph.css") + _compact("graphpage.css")
    return {name: _hashed(name, text.encode()) for name, text in texts.items()}


def write_scripts(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for file, data in scripts().values():
        (folder / file).write_bytes(data)


@cache
def page_style() -> str:
    return _compact("pages.css")


@cache
def search_style() -> str:
    return _read("search.css")


def bundle(entry: str) -> str:
    """Bundle a module with its imports as one classic script.

    It sets ``kbkit`` to what the module exports, if it exports anything; the annotations, which
    the engine loads, set ``kbkitAnnotations``.
    """
    parts = [_as_function(name) for name in _dependencies(entry, [])]
    if _EXPORT.search(_read(f"{entry}.js")):
        name = "kbkitAnnotations" if entry == "annotations" else "kbkit"
        parts.append(f"globalThis.{name} = {_MODULE}{entry};\n")
    return _INDENTED.sub("", "(() => {\n" + "".join(parts) + "})();\n")


def _dependencies(name: str, before: list[str]) -> list[str]:
    for _, needed in _IMPORT.findall(_read(f"{name}.js")):
        if needed not in before:
            _dependencies(needed, before)
    before.append(name)
    return before


def _as_function(name: str) -> str:
    text = _COMMENT.sub("", _read(f"{name}.js"))
    exported: list[str] = _EXPORT.findall(text)
    text = _IMPORT.sub(lambda found: f"const {{{found[1]}}} = {_MODULE}{found[2]};\n", text)
    text = _EXPORT.sub("", text)
    return f"const {_MODULE}{name} = (() => {{\n{text}return {{{', '.join(exported)}}};\n}})();\n"


def _compact(name: str) -> str:
    return _SPACE.sub(" ", _STYLE_COMMENT.sub("", _read(name)))


def _read(name: str) -> str:
    return (_ASSETS / name).read_text(encoding="utf-8")


def _hashed(name: str, data: bytes) -> tuple[str, bytes]:
    stem, _, ending = name.partition(".")
    return f"{stem}.{hashlib.blake2b(data, digest_size=5).hexdigest()}.{ending}", data


_CHARSET = '<meta charset="utf-8">'
_POLICY = '<meta http-equiv="Content-Security-Policy" content="{}">'
_INLINE = re.compile(r"<script>(.*?)</script>", re.DOTALL)
_HOLE = re.compile(r"\{\{.*?\}\}", re.DOTALL)
_FILLING = r"[\w.:/%~-]*"
"""Valid values for a script's template: an address without quotes."""
_PARAGRAPH = re.compile(r"<p>(.*?)</p>", re.DOTALL)
_TITLE = re.compile(r"<h1.*?</h1>", re.DOTALL)
_TAG = re.compile(r"<[^<>]*>")
_SENTENCES = 160
"""Characters of a description; search engines show no more."""
_TELLING = 30
"""Shorter paragraphs describe nothing."""


def theme_scripts(folders: Iterable[str | Path]) -> re.Pattern[str]:
    forms = {
        _FILLING.join(map(re.escape, _HOLE.split(script)))
        for folder in folders
        for template in sorted(Path(folder).rglob("*.html"))
        for script in _INLINE.findall(template.read_text("utf-8", errors="replace"))
        if "{%" not in script
    }
    return re.compile("|".join(f"(?:{form})" for form in sorted(forms)) or r"(?!)")


def content_security_policy(page: str, theirs: re.Pattern[str]) -> str:
    """Return a Content-Security-Policy that allows the site's own files only.

    Scripts within the page are allowed by their hashes where the theme brings them: whatever else
    stands there came with a value, and does not run.
    """
    hashes = "".join(
        f" 'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
        for text in dict.fromkeys(_INLINE.findall(page))
        if theirs.fullmatch(text)
    )
    return (
        f"default-src 'self'; script-src 'self'{hashes}; style-src 'self' 'unsafe-inline'; "
        "img-src 'self' data:; font-src 'self' data:; object-src 'none'; frame-src 'none'; "
        "base-uri 'none'; form-action 'self'"
    )


def add_head(output: str, theirs: re.Pattern[str], *, style: str = "", assets: str = "") -> str:
    """A page with our style, and a policy: a second wall behind the renderer."""
    policy = content_security_policy(output, theirs)
    # The encoding has to stand in the first kilobyte, which the policy fills
    output = output.replace(_CHARSET, "", 1)
    head = f"<head>{_CHARSET}{_POLICY.format(policy)}"
    output = output.replace("<head>", head, 1)
    if assets:
        ends = f'<link rel="stylesheet" href="{assets}/{scripts()["pages.css"][0]}">'
        ends += f'<script src="{assets}/{scripts()["contents.js"][0]}" defer></script>'
    else:
        style = page_style() + style
    ends = (ends if assets else "") + (f"<style>{style}</style>" if style else "")
    return output.replace("</head>", f"{ends}</head>", 1)


def description(content: str) -> str:
    """The beginning of the first paragraph that says something, for search engines."""
    texts = (_plain(paragraph[1]) for paragraph in _PARAGRAPH.finditer(content))
    text = next((text for text in texts if len(text) >= _TELLING), "")
    text = text or _plain(_TITLE.sub("", content, count=1))
    if len(text) > _SENTENCES:
        text = (text[:_SENTENCES].rpartition(" ")[0] or text[:_SENTENCES]) + " …"
    # Braces would be templates to plugins that render the page
    return html.escape(text).replace("{", "&#123;").replace("}", "&#125;")


def _plain(content: str) -> str:
    return " ".join(html.unescape(_TAG.sub(" ", content)).split())
