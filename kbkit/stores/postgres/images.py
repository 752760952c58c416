"""Pictures of documents, and locks, in PostgreSQL."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import sqlalchemy as sa

from kbkit.errors import ConflictError
from kbkit.models import Image
from kbkit.stores.images import ImageStore, require_name
from kbkit.stores.locks import Locks
from kbkit.stores.postgres.errors import explained


class PostgresImages:
    """A `kbkit.stores.images.ImageStore` in the schema of the catalog."""

    def __init__(self, engine: sa.Engine, place: str, before: ImageStore | None = None) -> None:
        self._engine = engine
        self._place = place
        self._before = before

    def _execute(self, statement: sa.TextClause, **values: Any) -> list[Any]:
        with explained(self._place), self._engine.begin() as connection:
            return list(connection.execute(statement, values).scalars())

    def add(self, image: Image) -> None:
        values = {"name": require_name(image.name)}
        if not self._execute(_TOUCH, **values):
            self._execute(_ADD, **values, data=image.data)

    def names(self) -> set[str]:
        return set(self._execute(_NAMES)).union(self._before.names() if self._before else ())

    def now(self) -> float:
        return float(self._execute(_NOW)[0])

    def sweep(self, used: Collection[str], before: float) -> tuple[int, int]:
        sizes = self._execute(_SWEEP, used=list(used), before=before)
        return len(sizes), sum(sizes)

    def read(self, name: str) -> bytes | None:
        row = self._execute(_READ, name=name)
        if row:
            return bytes(row[0])
        return self._before.read(name) if self._before else None


# a new time keeps `sweep` from removing the picture, without sending its bytes again
_TOUCH = sa.text("UPDATE images SET added_at = clock_timestamp() WHERE name = :name RETURNING name")
_ADD = sa.text(
    "INSERT INTO images VALUES (:name, :data, clock_timestamp())"
    " ON CONFLICT (name) DO UPDATE SET added_at = excluded.added_at RETURNING name"
)
_NAMES = sa.text("SELECT name FROM images")
_NOW = sa.text("SELECT extract(epoch FROM clock_timestamp())::double precision")
_SWEEP = sa.text(
    "DELETE FROM images WHERE NOT name = ANY(:used) AND added_at < to_timestamp(:before)"
    " RETURNING length(data)"
)
_READ = sa.text("SELECT data FROM images WHERE name = :name")


def lock_number(schema: str, name: str) -> int:
    """Return the number of an advisory lock; each schema is a workspace with its own locks."""
    digest = hashlib.blake2b(f"kbkit\0{schema}\0{name}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


class PostgresLocks(Locks):
    """Advisory locks, which the server frees when the holder's connection ends."""

    def __init__(self, engine: sa.Engine, schema: str, place: str) -> None:
        self._engine = engine
        self._schema = schema
        self._place = place

    @contextmanager
    def hold(self, name: str, *, wait: float, task: str = "", poll: float = 0.05) -> Iterator[None]:
        number = {"number": lock_number(self._schema, name)}
        deadline = time.monotonic() + wait
        with explained(self._place):
            connection = self._engine.connect()
        try:
            with explained(self._place):
                while not connection.execute(_TRY, number).scalar_one():
                    if time.monotonic() >= deadline:
                        raise ConflictError(
                            f"another process is {task or f'holding the lock {name}'}; wait for it "
                            "to end, and run this again"
                        )
                    time.sleep(poll)
            yield
        finally:
            with suppress(sa.exc.SQLAlchemyError):  # a closed connection may be noticed late
                connection.execute(_RELEASE, number)
            # not back into the pool: closing the connection frees the lock in any case
            connection.invalidate()
            connection.close()


_TRY = sa.text("SELECT pg_try_advisory_lock(:number)")
_RELEASE = sa.text("SELECT pg_advisory_unlock(:number)")
