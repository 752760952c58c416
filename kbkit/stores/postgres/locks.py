"""Locks between processes of any machine: advisory locks of the server."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa

from kbkit.errors import ConflictError
from kbkit.stores.locks import Locks
from kbkit.stores.postgres.errors import explained


def lock_number(schema: str, name: str) -> int:
    """The number that an advisory lock has; schemas of one database are different workspaces."""
    digest = hashlib.blake2b(f"kbkit\0{schema}\0{name}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


class PostgresLocks(Locks):
    """The locks of one workspace.

    The server frees a lock when the connection of its holder ends, however it ends.

    Args:
        engine: Whose connections commit by themselves.
        schema: Where the tables are.
        place: What the database is called in messages.
    """

    def __init__(self, engine: sa.Engine, schema: str, place: str) -> None:
        self._engine = engine
        self._schema = schema
        self._place = place

    @contextmanager
    def hold(self, name: str, *, wait: float, task: str = "", poll: float = 0.05) -> Iterator[None]:
        """Hold a lock.

        Args:
            name: Of the lock.
            wait: Seconds to wait for another holder.
            task: What the holder does, for the message to others.
            poll: Seconds between two tries.

        Raises:
            ConflictError: Another process still holds it after that time.
            WorkspaceError: The server cannot be asked.
        """
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
            # not back into the pool: whatever has happened, its end is the end of the lock
            connection.invalidate()
            connection.close()


_TRY = sa.text("SELECT pg_try_advisory_lock(:number)")
