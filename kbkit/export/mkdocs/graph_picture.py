"""The picture on a graph's page."""

from __future__ import annotations

import hashlib
import html
import json
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbkit.embedding.minilm import Layer, Weights, minilm_vocabulary, minilm_weights
from kbkit.errors import ExportError
from kbkit.export.index.packing import encode_call
from kbkit.export.mkdocs.page_head import scripts
from kbkit.export.pages.outline import GRAPH_DATA

FOLDER = "graphs"
"""Folder of the data of graphs, beside the scripts."""


_ROWS = 250
"""Entities of a part."""
_NEIGHBORS = 60
"""Maximum neighbours."""


def graph_scripts(export: Path, address: Callable[[str], str | None]) -> dict[str, bytes]:
    """The scripts that give the data of an export's graph to its page, by their names.

    Where a site has no server, JSON cannot be fetched. The first has what is drawn; the others, in
    a folder called like it, have the neighbours of what is not, and are read when somebody looks
    for it.
    """
    path = export / GRAPH_DATA
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        values["documents"] = [[title, address(page) or ""] for title, page in values["documents"]]
        rows = _neighborhoods(values)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise ExportError(f"{path}: damaged ({error}); export again") from error
    parts = [rows[start : start + _ROWS] for start in range(0, len(rows), _ROWS)]
    values = {name: held for name, held in values.items() if name not in ("undrawn", "further")}
    values["parts"] = [part[0][0] for part in parts]
    data = encode_call("kbkitGraph", [values])
    written = [encode_call("kbkitGraphPart", [n, part]) for n, part in enumerate(parts)]
    name = hashlib.blake2b(b"".join([data, *written]), digest_size=5).hexdigest()
    return {f"{name}.js": data} | {f"{name}/{n}.js": each for n, each in enumerate(written)}


def _neighborhoods(values: Mapping[str, Any]) -> list[list[Any]]:
    """Entities that have neighbours which are not drawn, or are not drawn themselves, by name.

    A row has name, type, passages, documents, places, and of each neighbour the relation, whether
    it points there, its weight, and the number of a node that is drawn, or name and type.
    """
    nodes, undrawn = values["nodes"], values["undrawn"]
    brief = [[row[0], row[1], *row[5:8]] for row in nodes] + undrawn
    near: dict[int, list[list[Any]]] = {}
    for source, target, relation, weight in values["further"]:
        for here, other in ((source, target), (target, source)):
            found = near.setdefault(here, [])
            if len(found) < _NEIGHBORS:
                end = [other] if other < len(nodes) else brief[other][:2]
                found.append([relation, int(here == source), weight, *end])
    rows = [[*brief[here], found] for here, found in near.items()]
    # as browsers compare texts
    return sorted(rows, key=lambda row: row[0].encode("utf-16-be", "surrogatepass"))


def picture(name: str, kb: str, assets: str) -> str:
    style, script = scripts()["graph.css"][0], scripts()["graph.js"][0]
    return (
        f'<link rel="stylesheet" href="{assets}/{style}">'
        f'<div id="kb-graph" class="kb-graph-page" data-kb="{html.escape(kb)}"></div>'
        f'<script src="{assets}/{script}" defer></script>'
        f'<script src="{assets}/{FOLDER}/{name}" defer></script>'
    )


WORDS = 64
"""Tokens of a file: 25 kB; a query reads some ten."""
MAX_LENGTH = 256
"""Tokens read of a text."""
_LICENSE = Path(__file__).parents[1] / "assets" / "minilm-license.txt"


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


def _files(weights: Weights) -> Iterator[tuple[str, bytes]]:
    yield "LICENSE.txt", _LICENSE.read_bytes()
    yield "vocabulary.txt", "\n".join(minilm_vocabulary()).encode()
    norm = weights.norm
    numbers = [weights.kind, norm.weights, norm.biases, weights.place_scales[:MAX_LENGTH]]
    yield "embeddings.bin", _packed(numbers, [weights.places[:MAX_LENGTH]])
    for number, layer in enumerate(weights.layers):
        yield f"layer-{number}.bin", _layer(layer)
    for number, start in enumerate(range(0, len(weights.words), WORDS)):
        part = slice(start, start + WORDS)
        yield f"words-{number}.bin", _packed([weights.word_scales[part]], [weights.words[part]])


def _layer(layer: Layer) -> bytes:
    products = [layer.inputs, layer.attention, layer.up, layer.down]
    numbers = list(chain.from_iterable((each.scales, each.biases) for each in products))
    for norm in (layer.attention_norm, layer.norm):
        numbers += [norm.weights, norm.biases]
    return _packed(numbers, [each.values for each in products])


def _packed(numbers: list[NDArray[np.float32]], steps: list[NDArray[np.int8]]) -> bytes:
    parts: list[NDArray[Any]] = [each.astype("<f4").reshape(-1) for each in numbers]
    return b"".join(each.tobytes() for each in [*parts, *steps])
