"""The head of an exported page: policy, style and description."""

import base64
import hashlib
import html
import json
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbkit.embedding.models import Layer, ModelWeights, minilm_vocabulary, minilm_weights
from kbkit.export.facts import asset, bundle_modules, intact
from kbkit.export.index_packing import encode_call
from kbkit.export.pages.outline import GRAPH_DATA

_STYLE_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_SPACE = re.compile(r"\s+")

_ENTRIES = {"engine": "service", "graph": "graphpage"} | {
    name: name for name in ("boot", "page", "passage", "reading", "worker")
}
"""Entry modules of scripts."""


@cache
def scripts() -> dict[str, tuple[str, bytes]]:
    texts = {f"{name}.js": bundle(entry) for name, entry in _ENTRIES.items()}
    texts |= {name: _compact(name) for name in ("pages.css", "graph.css")}
    return {name: _add_hash(name, text.encode()) for name, text in texts.items()}


def bundle(entry: str) -> str:
    """Bundle a module with its imports as one classic script; `kbkit` has its exports."""
    modules, exported = bundle_modules(f"export/assets/{entry}.js")
    return f"(() => {{\n{modules}globalThis.kbkit = {exported};\n}})();\n"


def _compact(name: str) -> str:
    return _SPACE.sub(" ", _STYLE_COMMENT.sub("", asset(name)))


def _add_hash(name: str, data: bytes) -> tuple[str, bytes]:
    stem, _, ending = name.partition(".")
    return f"{stem}.{hashlib.blake2b(data, digest_size=5).hexdigest()}.{ending}", data


_CHARSET = '<meta charset="utf-8">'
_POLICY = '<meta http-equiv="Content-Security-Policy" content="{}">'
_INLINE = re.compile(r"<script>(.*?)</script>", re.DOTALL)
_HOLE = re.compile(r"\{\{.*?\}\}", re.DOTALL)
_FILLING = r"[\w.:/%~-]*"  # values in a script's template: addresses without quotes
_PARAGRAPH = re.compile(r"<p>(.*?)</p>", re.DOTALL)
_TITLE = re.compile(r"<h1.*?</h1>", re.DOTALL)
_TAG = re.compile(r"<[^<>]*>")
_MAX_DESCRIPTION = 160  # characters that search engines show
_MIN_PARAGRAPH = 30  # shorter paragraphs are no description


_COPY = re.compile(
    r'(<script id="__config"[^>]*>[^<]*?)(?:, "content\.code\.copy"|"content\.code\.copy"(?:, )?)'
)


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
    """Return a Content-Security-Policy for the site's own files.

    It allows the theme's inline scripts by hash; others may come from a document.
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


def add_head(output: str, theirs: re.Pattern[str], *, assets: str = "") -> str:
    """Add a policy, a second defence after the renderer, and styles to a page.

    Pages of documents load styles and a script from `assets`; search pages contain their styles.
    """
    policy = content_security_policy(output, theirs)
    # the encoding must be in the first kilobyte, which the policy fills
    output = output.replace(_CHARSET, "", 1)
    head = f"<head>{_CHARSET}{_POLICY.format(policy)}"
    output = output.replace("<head>", head, 1)
    if assets:
        output, copied = _COPY.subn(r"\1", output, count=1)
        links = f'<link rel="stylesheet" href="{assets}/{scripts()["pages.css"][0]}">'
        links += f'<script src="{assets}/{scripts()["reading.js"][0]}"'
        links += f"{' data-copy' if copied else ''} defer></script>"
    else:
        links = f"<style>{_compact('pages.css')}{asset('search.css')}</style>"
    return output.replace("</head>", f"{links}</head>", 1)


def description(content: str) -> str:
    """Return the start of the first long paragraph, for search engines."""
    texts = (text_of_html(paragraph[1]) for paragraph in _PARAGRAPH.finditer(content))
    text = next((text for text in texts if len(text) >= _MIN_PARAGRAPH), "")
    text = text or text_of_html(_TITLE.sub("", content, count=1))
    if len(text) > _MAX_DESCRIPTION:
        text = (text[:_MAX_DESCRIPTION].rpartition(" ")[0] or text[:_MAX_DESCRIPTION]) + " …"
    # plugins that render the page would read braces as templates
    return html.escape(text).replace("{", "&#123;").replace("}", "&#125;")


def text_of_html(content: str) -> str:
    return " ".join(html.unescape(_TAG.sub(" ", content)).split())


FOLDER = "graphs"
"""Folder of the data of graphs, next to the scripts."""


def graph_scripts(export: Path, address: Callable[[str], str | None]) -> dict[str, bytes]:
    """Return the scripts with a graph's data, by name.

    The first has the picture. The second, in a folder of its name, has the other nodes and
    relations, and is loaded on demand.
    """
    path = export / GRAPH_DATA
    if not path.exists():
        return {}
    with intact(path):
        values = json.loads(path.read_text(encoding="utf-8"))
        values["documents"] = [[title, address(page) or ""] for title, page in values["documents"]]
        nodes, edges, pictured = values["nodes"], values["edges"], values.pop("pictured")
        inside = sum(max(edge[:2]) < pictured for edge in edges)
        further = {"nodes": nodes[pictured:], "edges": edges[inside:]}
        values |= {"nodes": nodes[:pictured], "edges": edges[:inside]}
        values["further"] = inside < len(edges)
    data = encode_call("kbkitGraph", [values]), encode_call("kbkitFurther", [further])
    name = hashlib.blake2b(b"".join(data), digest_size=5).hexdigest()
    return dict(zip((f"{name}.js", f"{name}/further.js"), data, strict=True))


def picture(name: str, kb: str, assets: str) -> str:
    style, script = scripts()["graph.css"][0], scripts()["graph.js"][0]
    return (
        f'<link rel="stylesheet" href="{assets}/{style}">'
        f'<div id="kb-graph" class="kb-graph-page" data-kb="{html.escape(kb)}"></div>'
        f'<script src="{assets}/{script}" defer></script>'
        f'<script src="{assets}/{FOLDER}/{name}" defer></script>'
    )


WORDS = 64
"""Tokens of a file of 25 kB; a query reads about ten files."""
MAX_LENGTH = 256
"""Tokens read of a text."""


def write_browser_model(folder: Path) -> str:
    files = dict(_files(minilm_weights()))
    digest = hashlib.blake2b(digest_size=8)
    for name, data in files.items():
        digest.update(f"{name} {len(data)}\n".encode() + data)
    target = folder / digest.hexdigest()
    target.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (target / name).write_bytes(data)
    return target.name


def _files(weights: ModelWeights) -> Iterator[tuple[str, bytes]]:
    yield "LICENSE.txt", asset("minilm-license.txt").encode()
    yield "vocabulary.txt", "\n".join(minilm_vocabulary()).encode()
    places = weights.places * weights.place_scales[:, None] + weights.kind
    numbers = [weights.norm.weights, weights.norm.biases, places[:MAX_LENGTH]]
    yield "embeddings.bin", _pack(numbers, [])
    for number, layer in enumerate(weights.layers):
        yield f"layer-{number}.bin", _layer(layer)
    for number, start in enumerate(range(0, len(weights.words), WORDS)):
        part = slice(start, start + WORDS)
        yield f"words-{number}.bin", _pack([weights.word_scales[part]], [weights.words[part]])


def _layer(layer: Layer) -> bytes:
    products = [layer.inputs, layer.attention, layer.up, layer.down]
    numbers = list(chain.from_iterable((product.scales, product.biases) for product in products))
    for norm in (layer.attention_norm, layer.norm):
        numbers += [norm.weights, norm.biases]
    return _pack(numbers, [product.values for product in products])


def _pack(numbers: list[NDArray[np.float32]], steps: list[NDArray[np.int8]]) -> bytes:
    parts: list[NDArray[Any]] = [array.astype("<f4").reshape(-1) for array in numbers]
    return b"".join(array.tobytes() for array in [*parts, *steps])
