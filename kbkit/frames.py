"""DataFrames and HTML tables of a knowledge base.

Column types do not depend on the content: text is ``string``, numbers that may be missing are
``Int64``, times are UTC, and enumerations are categories.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import islice
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from kbkit import models
from kbkit.models.hits import typed_frame
from kbkit.models.licenses import KEYS as LICENSE_KEYS
from kbkit.models.values import format_value, shared_length

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

_STATES = [state.value for state in models.DocumentState]
_NO_FOLDER = "(top)"
_SNIPPET = 160
_ROWS = 20
"""Rows of a collection in a notebook."""


def workspace_frame(infos: Iterable[models.KnowledgeBaseInfo]) -> pd.DataFrame:
    """Return knowledge bases as a DataFrame, indexed by name.

    ``documents`` counts searchable ones, ``current`` and ``stale``, but not ``gone``. ``pending``
    chunks are searched, but not in Chroma yet.
    """
    numbers = dict.fromkeys(_STATES, "Int64")
    rows = [
        asdict(info) | {state: info.states.get(state, 0) for state in _STATES} for info in infos
    ]
    return typed_frame(
        rows,
        models.KnowledgeBaseInfo,
        "name description documents chunks current stale gone pending source_types embedder "
        "dimensions created_at updated_at",
        **numbers,
    ).set_index("name")


def documents_frame(documents: Iterable[models.Document]) -> pd.DataFrame:
    """Return documents as a DataFrame, indexed by id.

    ``content`` is Markdown and ``length`` its number of characters; see `folders` for ``folder``.
    ``fetched_at`` is the time when the source last confirmed the content. ``license`` is an SPDX
    name or the stated text (see `kbkit.models.License`).
    """
    documents = list(documents)
    rows = [
        {**document.to_dict()}
        | {"fetched_at": document.fetched_at, "folder": name, "length": len(document.content)}
        | dict.fromkeys(LICENSE_KEYS)
        | models.License.of(document.metadata).to_metadata()
        for document, name in zip(documents, folders([d.uri for d in documents]), strict=True)
    ]
    return typed_frame(
        rows,
        models.Document,
        "id uri title description document_type state fetched_at folder tags length license "
        "license_url attribution metadata content",
        folder="category",
        length="Int64",
    ).set_index("id")


def chunks_frame(chunks: Iterable[models.Chunk]) -> pd.DataFrame:
    """Return chunks as a DataFrame, indexed by id, in document order.

    ``start`` and ``end`` are character offsets in the document; ``page`` counts from 1 and is
    missing if the source has no pages.
    """
    rows = [asdict(chunk) | {"length": chunk.end - chunk.start} for chunk in chunks]
    names = "id document_id position heading_path anchor page start end length text"
    return typed_frame(rows, models.Chunk, names, length="Int64").set_index("id")


def annotations_frame(annotated: Iterable[models.AnnotatedChunk]) -> pd.DataFrame:
    """Return annotations as a DataFrame, in document order.

    ``start`` and ``end`` are character offsets in the chunk; ``domains``, ``entities``,
    ``problems``, ``resolutions`` and ``contexts`` are tuples of texts.
    """
    rows = [
        asdict(annotation)
        | {
            "chunk_id": one.chunk_id,
            "title": one.title,
            "section": " > ".join(one.heading_path),
            "frame": annotation.frame.value if annotation.frame else None,
            "uri": one.uri,
        }
        for one in annotated
        for annotation in one.annotations
    ]
    return typed_frame(
        rows,
        models.Annotation,
        "chunk_id title section frame confidence normalized_text domains entities problems "
        "resolutions contexts start end text annotator uri",
    )


def ratings_frame(ratings: Iterable[models.Rating]) -> pd.DataFrame:
    """Return ratings as a DataFrame, oldest first, indexed by id.

    ``average`` and ``raters`` summarize the target; the last rating of each rater counts.
    """
    frame = typed_frame(
        [
            asdict(rating) | {"target": rating.target.id, "target_type": rating.target.kind.value}
            for rating in ratings
        ],
        models.Rating,
        "id target target_type score query rater note created_at",
        target="string",
        target_type=["chunk", "document"],
    ).set_index("id")
    last = frame.drop_duplicates(["target", "rater"], keep="last").groupby("target")["score"]
    frame["average"] = frame["target"].map(last.mean()).astype("Float64")
    frame["raters"] = frame["target"].map(last.size()).astype("Int64")
    return frame


def sources_frame(sources: Iterable[models.SourceInfo]) -> pd.DataFrame:
    """Return sources as a DataFrame, oldest first, indexed by id."""
    rows = [asdict(source) for source in sources]
    names = "id type location base from_recipe created_at options name enabled documents version"
    return typed_frame(rows, models.SourceInfo, names, type="category").set_index("id")


def map_frame(
    passages: Sequence[tuple[models.Chunk, models.Document]],
    vectors: NDArray[np.float32],
    chunks: int,
) -> pd.DataFrame:
    """Return chunks with positions on a plane, indexed by chunk id.

    The plane shows most of the vectors' variance (PCA, Pearson 1901); ``frame.attrs["variance"]``
    has the share of each axis.
    """
    places, variance = _principal_plane(vectors)
    rows = [
        {
            "id": chunk.id,
            "x": float(x),
            "y": float(y),
            "title": document.title or document.uri,
            "section": " › ".join(chunk.heading_path),
            "snippet": " ".join(chunk.text[: 2 * _SNIPPET].split())[:_SNIPPET],
            "document_type": document.document_type.value,
            "folder": name,
            "uri": document.uri,
        }
        for (chunk, document), (x, y), name in zip(
            passages, places, folders([document.uri for _, document in passages]), strict=True
        )
    ]
    return places_frame(rows, variance, chunks)


def places_frame(
    rows: Iterable[Mapping[str, Any]], variance: Sequence[float], chunks: int
) -> pd.DataFrame:
    frame = typed_frame(
        [dict(row) for row in rows],
        models.Document,
        "id x y title section snippet document_type folder uri",
        x="float64",
        y="float64",
        folder="category",
    ).set_index("id")
    frame.attrs["variance"] = tuple(variance)
    frame.attrs["chunks"] = chunks
    return frame


def _principal_plane(
    vectors: NDArray[np.float32],
) -> tuple[NDArray[np.float64], tuple[float, float]]:
    """Project vectors onto two principal axes, shape ``(n, 2)``; also return the axes' shares."""
    import numpy as np

    centred = vectors.astype(np.float64)
    if len(centred):
        centred -= centred.mean(axis=0)
    covariance = centred.T @ centred
    total = float(np.trace(covariance))
    if total <= 1e-12 or len(covariance) < 2:  # no chunk, one chunk, or all equal
        return np.zeros((len(vectors), 2)), (0.0, 0.0)
    from scipy.linalg import eigh

    size = len(covariance)
    values, axes = eigh(covariance, subset_by_index=(size - 2, size - 1))
    axes = axes[:, ::-1]
    # the sign of an axis is arbitrary: make its largest component positive
    axes = axes * np.sign(axes[np.abs(axes).argmax(axis=0), (0, 1)])
    first, second = (max(0.0, float(value)) / total for value in values[::-1])
    return centred @ axes, (first, second)


def folders(uris: Sequence[str]) -> list[str]:
    """Return a folder for each URI: the first one that differs within its site.

    The folders of a package are its modules. URIs without one get the common folder or the host.
    """
    split = [_site_and_path(uri) for uri in uris]
    shared: dict[str, tuple[str, ...]] = {}
    for site, path in split:
        if path:
            shared[site] = path[: shared_length([shared.get(site, path), path])]
    names = []
    for site, path in split:
        common = shared.get(site, ())
        host = site.partition("://")[2]
        names.append((path[len(common) :] or common[-1:] or (host or _NO_FOLDER,))[0])
    return names


def _site_and_path(uri: str) -> tuple[str, tuple[str, ...]]:
    try:
        parts = urlsplit(uri)
    except ValueError:
        return "", ()
    if parts.scheme == "python":
        return "python:" + parts.path.partition(".")[0], tuple(parts.path.split(".")[:-1])
    path = tuple(unquote(part) for part in parts.path.split("/")[:-1] if part)
    return f"{parts.scheme}://{parts.netloc}", path


_SHOWN = {
    models.KnowledgeBaseInfo: "name description documents chunks updated_at",
    models.Document: "title document_type uri",
    models.Chunk: "heading_path text",
    models.Rating: "score query rater note",
    models.SourceInfo: "type location",
    models.Annotation: "frame normalized_text entities",
}
"""The attributes that a table shows, by type of item."""


def collection_html(
    caption: str, kind: type, values: Iterable[Any], limit: int | None = _ROWS
) -> str:
    """Return the first items of a collection as an HTML table, with shortened texts."""
    names = _SHOWN[kind].split()
    head = _cells("th", (name.replace("_", " ") for name in names))
    rows = (
        _cells("td", (format_value(getattr(item, name))[:_SNIPPET] for name in names))
        for item in islice(values, limit)
    )
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return (
        f"<p>{html.escape(caption)}</p>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )


def _cells(tag: str, texts: Iterable[str]) -> str:
    return "".join(f"<{tag} style='text-align:left'>{html.escape(text)}</{tag}>" for text in texts)
