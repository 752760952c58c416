"""Tokens, stored as digests. Functions of a transaction."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from kbkit.errors import ConflictError, NotFoundError, WorkspaceError
from kbkit.models import TokenInfo
from kbkit.stores.catalog.database import Transaction, is_list_of_texts
from kbkit.stores.catalog.workspace_schema import tokens

_SCOPES = frozenset({"read", "write", "admin"})
_DIGEST = re.compile(r"[0-9a-f]{64}")


def add(transaction: Transaction, info: TokenInfo, digest: str) -> None:
    if transaction.execute(sa.select(tokens.c.id).where(tokens.c.name == info.name)).first():
        raise ConflictError(
            f"a token named {info.name!r} exists; choose another name, or revoke it first"
        )
    transaction.execute(
        tokens.insert().values(
            id=info.id,
            name=info.name,
            digest=digest,
            scope=info.scope,
            kbs=list(info.kbs),
            created_at=info.created_at,
            expires_at=info.expires_at,
        )
    )


def find(transaction: Transaction, token_id: str) -> tuple[TokenInfo, str] | None:
    row = transaction.execute(sa.select(tokens).where(tokens.c.id == token_id)).first()
    return None if row is None else (_info(row), row.digest)


def listed(transaction: Transaction) -> list[TokenInfo]:
    return [_info(row) for row in transaction.execute(sa.select(tokens).order_by(tokens.c.name))]


def delete(transaction: Transaction, name: str) -> TokenInfo:
    # reads only some columns, so that damaged rows can be deleted, too
    query = sa.select(tokens.c.id, tokens.c.name, tokens.c.scope)
    row = transaction.execute(
        query.where(sa.or_(tokens.c.name == name, tokens.c.id == name))
    ).first()
    if row is None:
        named = ", ".join(each.name for each in transaction.execute(query.order_by(tokens.c.name)))
        raise NotFoundError(f"no token {name!r}; there {f'are {named}' if named else 'is none'}")
    try:
        stored = find(transaction, row.id)
    except (WorkspaceError, ValueError, TypeError):
        stored = None
    transaction.execute(tokens.delete().where(tokens.c.id == row.id))
    return stored[0] if stored else TokenInfo(row.id, row.name, row.scope, (), datetime.now(UTC))


def note_uses(transaction: Transaction, used: Mapping[str, datetime]) -> None:
    for token_id, at in used.items():
        transaction.execute(tokens.update().where(tokens.c.id == token_id).values(used_at=at))


def _info(row: sa.Row[Any]) -> TokenInfo:
    whole = is_list_of_texts(row.kbs) and row.scope in _SCOPES and _DIGEST.fullmatch(row.digest)
    if not whole:
        raise WorkspaceError(f"the token {row.id} cannot be read; `kbkit doctor` shows the remedy")
    return TokenInfo(
        row.id, row.name, row.scope, tuple(row.kbs), row.created_at, row.expires_at, row.used_at
    )
