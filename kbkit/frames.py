"""What a knowledge base holds, as pandas DataFrames and as HTML for notebooks."""

from __future__ import annotations

import html
from collections.abc import Iterable
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from kbkit.models import Chunk, Document, KnowledgeBaseInfo, Rating

if TYPE_CHECKING:
    import pandas as pd


def documents_frame(documents: Iterable[Document]) -> pd.DataFrame:
    """Documents as a DataFrame, indexed by id; ``content`` is the Markdown."""
    import pandas as pd

    columns = [
        "id", "uri", "title", "document_type", "tags", "state", "fetched_at", "metadata", "content",
    ]  # fmt: skip
    rows = [document.to_dict() for document in documents]
    frame = pd.DataFrame(rows, columns=columns).set_index("id")
    frame["fetched_at"] = pd.to_datetime(frame["fetched_at"], utc=True)
    for name in ("document_type", "state"):
        frame[name] = frame[name].astype("category")
    return frame


def chunks_frame(chunks: Iterable[Chunk]) -> pd.DataFrame:
    """Chunks as a DataFrame, indexed by id."""
    import pandas as pd

    columns = [
        "id", "document_id", "position", "start", "end", "heading_path", "anchor", "page", "text",
    ]  # fmt: skip
    frame = pd.DataFrame([asdict(chunk) for chunk in chunks], columns=columns)
    frame["page"] = frame["page"].astype("Int64")
    return frame.set_index("id")


def ratings_frame(ratings: Iterable[Rating]) -> pd.DataFrame:
    """Ratings as a DataFrame, indexed by id.

    ``average`` and ``raters`` tell what all ratings of the target come to, where the last one of
    each rater counts.
    """
    import pandas as pd

    columns = ["id", "target", "target_type", "score", "query", "rater", "note", "created_at"]
    frame = pd.DataFrame([asdict(rating) for rating in ratings], columns=columns).set_index("id")
    frame["created_at"] = pd.to_datetime(frame["created_at"], utc=True)
    last = frame.drop_duplicates(["target", "rater"], keep="last").groupby("target")["score"]
    frame["average"] = frame["target"].map(last.mean()).astype(float)
    frame["raters"] = frame["target"].map(last.size()).astype(int)
    return frame


def info_html(info: KnowledgeBaseInfo) -> str:
    """The figures of a knowledge base as an HTML table."""
    age = datetime.now(UTC) - info.updated_at
    rows = {
        "documents": f"{info.documents:,}",
        "chunks": f"{info.chunks:,}",
        "types": ", ".join(f"{name} {count:,}" for name, count in info.document_types.items()),
        "sources": ", ".join(info.source_types),
        "embedder": info.embedder,
        "updated": f"{info.updated_at:%Y-%m-%d %H:%M} UTC ({age.days} days ago)",
    }
    body = "".join(
        f"<tr><th style='text-align:left'>{key}</th>"
        f"<td style='text-align:left'>{html.escape(value)}</td></tr>"
        for key, value in rows.items()
        if value
    )
    return (
        f"<p><b>{html.escape(info.name)}</b> {html.escape(info.description)}</p>"
        f"<table>{body}</table>"
    )
