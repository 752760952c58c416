"""Fitted query encoders, for chunks and summaries. Functions of the caller's transaction.

Functions of the caller's transaction. The table of term vectors is kept as float16: a query's
vector is a sum of its rows, and what rounding takes from it moves no ranking.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from kbkit.errors import WorkspaceError
from kbkit.stores.catalog.database import Transaction
from kbkit.stores.catalog.schema import card_encoders, query_encoders

EncoderTarget = Literal["chunks", "cards"]
"""Target of a query vector: chunks or summaries."""

_TABLES: Mapping[EncoderTarget, sa.Table] = {"chunks": query_encoders, "cards": card_encoders}
_STATE = ("embedder", "fitted_at", "version", "chunks", "report")


@dataclass(frozen=True, slots=True)
class EncoderState:
    """Fingerprint of a fit, to tell whether a query encoder is still valid.

    Attributes:
        embedder: Fingerprint of the model whose vectors it was fitted to.
        report: Choice and quality of the fit, as JSON values.
    """

    embedder: str
    fitted_at: datetime
    version: int
    chunks: int
    report: Mapping[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class EncoderRow:
    """A stored query encoder.

    Attributes:
        vectors: Their rows; float32, shape ``(len(terms), dimensions)``.
    """

    state: EncoderState
    terms: tuple[str, ...]
    vectors: NDArray[np.float32]


def state(
    transaction: Transaction, kb_id: str, target: EncoderTarget = "chunks"
) -> EncoderState | None:
    table = _TABLES[target]
    columns = [table.c[name] for name in _STATE]
    row = transaction.execute(sa.select(*columns).where(table.c.kb_id == kb_id)).one_or_none()
    return None if row is None else EncoderState(**row._mapping)


def fitted_to(transaction: Transaction, kb_id: str) -> tuple[str, datetime] | None:
    """Embedder that the encoder was fitted to, and when; it takes next to no time."""
    row = transaction.execute(_FITTED_TO, {"kb": kb_id}).one_or_none()
    return None if row is None else (row.embedder, row.fitted_at)


# built once, and without what stands behind the table: a database would have to walk through that
_FITTED_TO = sa.select(query_encoders.c.embedder, query_encoders.c.fitted_at).where(
    query_encoders.c.kb_id == sa.bindparam("kb")
)


def load(
    transaction: Transaction, kb_id: str, target: EncoderTarget = "chunks"
) -> EncoderRow | None:
    table = _TABLES[target]
    row = transaction.execute(sa.select(table).where(table.c.kb_id == kb_id)).one_or_none()
    if row is None:
        return None
    terms = tuple(row.terms.split(" ")) if row.terms else ()
    values = np.frombuffer(row.vectors, "<f2") if len(row.vectors) % 2 == 0 else None
    if values is None or not terms or len(values) % len(terms):
        raise WorkspaceError(
            f"the stored query encoder is damaged ({len(terms)} terms, {len(row.vectors)} bytes); "
            "fit it again"
        )
    vectors = values.reshape(len(terms), -1).astype(np.float32)
    return EncoderRow(EncoderState(**{name: row._mapping[name] for name in _STATE}), terms, vectors)


def save(
    transaction: Transaction,
    kb_id: str,
    *,
    embedder: str,
    version: int,
    chunks: int,
    terms: Sequence[str],
    vectors: NDArray[np.float32],
    report: Mapping[str, Any],
    target: EncoderTarget = "chunks",
) -> None:
    """Keep the encoder of a knowledge base, in place of the one before."""
    joined = " ".join(terms)
    if len(joined.split(" ")) != len(vectors) or len(terms) != len(vectors):
        raise WorkspaceError(
            f"a query encoder of {len(terms)} terms and {len(vectors)} rows cannot be stored; "
            "each term, which has no space in it, needs one row"
        )
    values = {
        "embedder": embedder,
        "fitted_at": datetime.now(UTC),
        "version": version,
        "chunks": chunks,
        "terms": joined,
        "vectors": np.ascontiguousarray(vectors, "<f2").tobytes(),
        "report": dict(report),
    }
    remove(transaction, kb_id, target)
    transaction.execute(_TABLES[target].insert().values(kb_id=kb_id, **values))


def remove(transaction: Transaction, kb_id: str, target: EncoderTarget = "chunks") -> None:
    table = _TABLES[target]
    transaction.execute(table.delete().where(table.c.kb_id == kb_id))
