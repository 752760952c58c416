"""What places on disk are called in URIs, and which sources a refresh reads.

URIs of files outside the folder that relative paths start from were their paths on this machine,
and were published. They begin with the name of their source now. Documents keep their ids, so
chunks, vectors and ratings stay as they are.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from pathlib import Path, PurePosixPath
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    op.add_column("sources", sa.Column("name", sa.Text(), nullable=False, server_default=""))
    op.add_column(
        "sources", sa.Column("enabled", sa.Boolean(), nullable=False, server_default=sa.true())
    )
    connection = op.get_bind()
    query = sa.text("SELECT id, config FROM knowledge_bases")
    for kb_id, config in connection.execute(query).all():
        if _rename(connection, kb_id):
            _publish_anew(connection, kb_id, json.loads(config))


def _rename(connection: sa.Connection, kb_id: str) -> bool:
    """Name the sources of a knowledge base and its documents; whether any URI changed."""
    query = sa.text("SELECT id, uri, source_id FROM documents WHERE kb_id = :kb")
    documents = connection.execute(query, {"kb": kb_id}).all()
    taken = {row.uri for row in documents}
    names: set[str] = set()
    changed = False
    query = sa.text("SELECT id, spec, base FROM sources WHERE kb_id = :kb ORDER BY created_at, id")
    for source_id, text, base in connection.execute(query, {"kb": kb_id}).all():
        spec = json.loads(text)
        if not (path := spec.get("path")):
            continue
        before, name = _names(path, Path(base))
        if before != name:  # else it was named from the base, as others may be in the same folder
            plain, number = PurePosixPath(name or "files"), 1
            while name in names:
                number += 1
                name = str(plain.with_stem(f"{plain.stem}-{number}"))
        names.add(name)
        _set(connection, "sources", "name", {source_id: name})
        if before != name and spec["type"] in ("files", "openapi"):
            found = {row.id: row.uri for row in documents if row.source_id == source_id}
            new = _moved(found, before, name)
            changed |= _set(connection, "documents", "uri", _distinct(found, new, taken))
            _move_pages(connection, source_id, before, name)
    query = sa.text("SELECT id, uri FROM documents WHERE kb_id = :kb")
    left = {row.id: row.uri for row in connection.execute(query, {"kb": kb_id})}
    new = {known: name for known, uri in left.items() if (name := _published(uri)) != uri}
    return _set(connection, "documents", "uri", _distinct(left, new, taken)) or changed


def _names(path: str, base: Path) -> tuple[str, str]:
    """What the URIs of a source began with, and its name."""
    full = Path(path).expanduser()
    if not (base / full).exists():
        parts = path.replace(os.sep, "/").split("/")
        magic = next((i for i, part in enumerate(parts) if set(part) & set("*?[{")), len(parts))
        full = Path("/".join(parts[:magic]) or ("/" if magic else "")).expanduser()
    root, start = (Path(os.path.abspath(each)) for each in (base / full, base))  # noqa: PTH100
    inside = root.relative_to(start).as_posix() if root.is_relative_to(start) else None
    before = root.as_posix() if inside is None else "" if inside == "." else inside
    if inside is not None and start != Path(start.anchor):
        return before, before
    return before, root.name


def _moved(found: dict[str, str], before: str, name: str) -> dict[str, str]:
    """New URIs of those that began with another name, by whatever they are found by."""
    moved = {}
    for known, uri in found.items():
        rest = uri.removeprefix(before)
        if uri.startswith(before) and rest[:1] in ("", "/", "#"):
            moved[known] = f"{name}{rest}".lstrip("/")
    return moved


def _distinct(old: dict[str, str], new: dict[str, str], taken: set[str]) -> dict[str, str]:
    """New URIs such that no two documents have the same one."""
    chosen = {}
    for known, uri in new.items():
        taken.discard(old[known])
        free = uri
        while free in taken:
            free += "-2"
        taken.add(free)
        chosen[known] = free
    return chosen


def _published(uri: str) -> str:
    """The URI of a document of no such source, without where a file lies on this machine."""
    path = uri.removeprefix("file://")
    if not path.startswith("/"):
        return uri
    full = PurePosixPath(path)
    for folder in (Path.home(), Path(tempfile.gettempdir())):
        if folder.as_posix() != "/" and folder.as_posix() in map(str, full.parents):
            return full.relative_to(folder.as_posix()).as_posix()
    if path == uri and not Path(path).exists():
        return uri  # a path of a site, say
    mark = hashlib.blake2b(os.fsencode(full.parent), digest_size=4).hexdigest()
    return f"{full.parent.name or 'files'}-{mark}/{full.name}"


def _move_pages(connection: sa.Connection, source_id: str, before: str, name: str) -> None:
    query = sa.text("SELECT url FROM pages WHERE source_id = :source")
    urls = {url: url for url in connection.execute(query, {"source": source_id}).scalars()}
    moved = _moved(urls, before, name)
    if moved:
        statement = sa.text(
            "UPDATE pages SET url = :new, document_uri = :new "
            "WHERE source_id = :source AND url = :old"
        )
        rows = [{"source": source_id, "old": old, "new": new} for old, new in moved.items()]
        connection.execute(statement, rows)


def _set(connection: sa.Connection, table: str, column: str, values: dict[str, Any]) -> bool:
    if values:
        statement = sa.text(f"UPDATE {table} SET {column} = :value WHERE id = :id")  # noqa: S608
        connection.execute(statement, [{"id": k, "value": value} for k, value in values.items()])
    return bool(values)


def _publish_anew(connection: sa.Connection, kb_id: str, config: dict[str, Any]) -> None:
    """Have caches of the knowledge base made anew, and what is kept beside its vectors."""
    connection.execute(
        sa.text("UPDATE knowledge_bases SET version = version + 1 WHERE id = :kb"), {"kb": kb_id}
    )
    if (config.get("storage") or {}).get("text_in_chroma"):
        statement = sa.text(
            "INSERT INTO outbox (kb_id, chunk_seq, chunk_id) "
            "SELECT kb_id, seq, id FROM chunks WHERE kb_id = :kb"
        )
        connection.execute(statement, {"kb": kb_id})
