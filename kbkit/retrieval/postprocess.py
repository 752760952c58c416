"""The last stage of a search: llama-index node postprocessors that a recipe names.

A recipe is trusted: what it names is imported and run.
"""

from __future__ import annotations

import importlib
import json
import math
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from kbkit.embedding.redaction import safe_message
from kbkit.errors import PostprocessorError
from kbkit.models import Hit
from kbkit.recipes import PostprocessorSpec

if TYPE_CHECKING:
    from llama_index.core.postprocessor.types import BaseNodePostprocessor
    from llama_index.core.schema import NodeWithScore

_PACKAGES = "llama_index.postprocessor."


def shown_of(specs: Sequence[PostprocessorSpec], limit: int) -> int:
    """How many of the best hits postprocessors must be given for ``limit`` of them."""
    return max([limit, *(spec.hits for spec in specs)])


def postprocessed(
    hits: Sequence[Hit], query: str, specs: Sequence[PostprocessorSpec], limit: int
) -> tuple[Hit, ...]:
    """Hits as postprocessors leave them.

    Each is given what the one before left, at most its own number of hits or ``limit``, whichever
    is more. Order and scores are theirs, and what they leave out is out. A node that they make up
    or whose text they change is no hit: what is found is what the documents say.

    Args:
        hits: Best first.
        query: What was asked.
        specs: Which, in order.
        limit: Most hits to give.

    Raises:
        PostprocessorError: One cannot be opened, or failed.
    """
    for spec in specs:
        hits = _run(hits[: shown_of([spec], limit)], query, spec)
    return tuple(hits[:limit])


def _run(hits: Sequence[Hit], query: str, spec: PostprocessorSpec) -> list[Hit]:
    if not hits:
        return []
    from kbkit.retrieval.llamaindex import node_of

    processor = _opened(spec.path, json.dumps(spec.arguments, sort_keys=True, default=str))
    try:
        given = processor.postprocess_nodes([node_of(hit) for hit in hits], query_str=query)
        scored = {node.node.node_id: _score(node) for node in given}
    except Exception as error:  # whatever a third party's code raises
        detail = safe_message(error, spec.arguments)
        raise PostprocessorError(f"{spec.path}: failed ({detail})") from None
    by_id = {hit.chunk.id: hit for hit in hits}
    return [
        by_id[known] if score is None else replace(by_id[known], score=score)
        for known, score in scored.items()
        if known in by_id
    ]


def _score(node: NodeWithScore) -> float | None:
    """The score of a node, ``None`` where there is none."""
    if node.score is None:
        return None
    score = float(node.score)
    if not math.isfinite(score):
        raise ValueError(f"it gave the score {score}")
    return score


@lru_cache(maxsize=16)
def _opened(path: str, arguments: str) -> BaseNodePostprocessor:
    """The postprocessor at an import path; opened once a process, since it may be a large model.

    Args:
        path: ``package.module:Class``, or with a dot in place of the colon.
        arguments: Of its constructor, as JSON.

    Raises:
        PostprocessorError: There is none, or it cannot be opened.
    """
    options: dict[str, Any] = json.loads(arguments)
    module_name, _, class_name = path.replace(":", ".").rpartition(".")
    try:
        module = importlib.import_module(module_name)
    except Exception as error:  # importing runs a third party's code
        raise PostprocessorError(
            f"{path}: cannot import {module_name} ({safe_message(error, options)}); "
            f"{_install(module_name)}"
        ) from error
    from llama_index.core.postprocessor.types import BaseNodePostprocessor

    found = getattr(module, class_name, None)
    if not (isinstance(found, type) and issubclass(found, BaseNodePostprocessor)):
        raise PostprocessorError(
            f"{path}: {class_name} in {module_name} is not a llama-index postprocessor; name a "
            "class that derives from BaseNodePostprocessor"
        )
    try:
        return found(**options)
    # "from None" since a traceback of theirs may show a key
    except Exception as error:
        raise PostprocessorError(
            f"{path}: cannot be opened ({safe_message(error, options)}); check the arguments of "
            "this postprocessor, the package that it needs, and the keys in the environment"
        ) from None


def _install(module_name: str) -> str:
    if not module_name.startswith(_PACKAGES):
        return "install its package"
    name = module_name.removeprefix(_PACKAGES).split(".")[0].replace("_", "-")
    return f"pip install llama-index-postprocessor-{name}"
