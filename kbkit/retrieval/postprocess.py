"""Apply llama-index node postprocessors of a recipe, as the last stage.

A recipe is trusted: what it names is imported and run.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from kbkit.errors import PostprocessorError
from kbkit.models import Hit
from kbkit.recipes import PostprocessorSpec
from kbkit.third_party import is_there, open_class, safe_message

if TYPE_CHECKING:
    from llama_index.core.postprocessor.types import BaseNodePostprocessor
    from llama_index.core.schema import NodeWithScore

_PACKAGES = "llama_index.postprocessor."


def hits_needed(specs: Sequence[PostprocessorSpec], limit: int) -> int:
    """Return how many hits postprocessors need for ``limit`` results."""
    return max([limit, *(spec.hits for spec in specs)])


def postprocess(
    hits: Sequence[Hit], query: str, specs: Sequence[PostprocessorSpec], limit: int
) -> tuple[Hit, ...]:
    """Pass hits through postprocessors.

    Each is given what the one before left, at most its own number of hits or ``limit``, whichever
    is more. Order and scores are theirs, and what they leave out is out. A node that they make up
    or whose text they change is no hit: what is found is what the documents say.
    """
    for spec in specs:
        hits = _run(hits[: hits_needed([spec], limit)], query, spec)
    return tuple(hits[:limit])


def _run(hits: Sequence[Hit], query: str, spec: PostprocessorSpec) -> list[Hit]:
    if not hits:
        return []
    from kbkit.retrieval.llamaindex import node_of

    processor = _open(spec.path, json.dumps(spec.arguments, sort_keys=True, default=str))
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
    if node.score is None:
        return None
    score = float(node.score)
    if not math.isfinite(score):
        raise ValueError(f"it gave the score {score}")
    return score


@lru_cache(maxsize=16)
def _open(path: str, arguments: str) -> BaseNodePostprocessor:
    """The postprocessor at an import path; opened once a process, since it may be a large model."""
    from llama_index.core.postprocessor.types import BaseNodePostprocessor

    return open_class(
        path,
        json.loads(arguments),
        BaseNodePostprocessor,  # type: ignore[type-abstract]
        kind="llama-index postprocessor",
        name=path,
        error=PostprocessorError,
        install=_install(path),
        check="the arguments of this postprocessor, the package that it needs, and the keys in the "
        "environment",
    )


def check_installed(spec: PostprocessorSpec) -> None:
    """Check that a postprocessor's package is installed, without importing it."""
    if not is_there(spec.path):
        raise PostprocessorError(f"{spec.path}: is not installed; {_install(spec.path)}")


def _install(path: str) -> str:
    if not path.startswith(_PACKAGES):
        return "install its package"
    name = re.split("[.:]", path.removeprefix(_PACKAGES))[0].replace("_", "-")
    return f"pip install llama-index-postprocessor-{name}"
