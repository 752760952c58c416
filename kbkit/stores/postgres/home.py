"""The folder of files and entries beside a shared catalog.

Their texts lie in a folder, and the catalog knows what is in it. A machine with another folder
would take all that it lacks for deleted; so the first folder that has any is the home of all of
them, told by a mark in it, and others are sent there.
"""

from __future__ import annotations

import socket
from pathlib import Path
from uuid import uuid4

import sqlalchemy as sa

from kbkit.errors import WorkspaceError
from kbkit.stores.catalog.database import Database, Transaction
from kbkit.stores.catalog.knowledge_bases import BUILT_IN

_MARK = "home"
"""A file that identifies the folder, and moves with it."""


def other_home(database: Database, folder: Path) -> str:
    """Return the other folder that holds files and entries, if any.

    A folder with some becomes their home where they have none yet.
    """
    mark = _mark(folder)
    with database.read() as transaction:
        known = _home(transaction)
    if known is None and any((folder / name).is_dir() for name in BUILT_IN):
        with database.write() as transaction:
            known = _home(transaction)
            if known is None:
                known = mark or _made(folder), f"{socket.gethostname()}:{folder}"
                transaction.execute(_CLAIM, {"mark": known[0], "place": known[1]})
                return ""
    return "" if known is None or known[0] == mark else known[1]


def _home(transaction: Transaction) -> tuple[str, str] | None:
    row = transaction.execute(sa.text("SELECT mark, place FROM home")).first()
    return None if row is None else (row.mark, row.place)


_CLAIM = sa.text("INSERT INTO home VALUES (:mark, :place)")


def _mark(folder: Path) -> str:
    try:
        return (folder / _MARK).read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def _made(folder: Path) -> str:
    mark = uuid4().hex
    try:
        (folder / _MARK).write_text(f"{mark}\n", encoding="utf-8")
    except OSError as error:
        raise WorkspaceError(
            f"{folder}: {error.strerror}; name a folder that you may write to"
        ) from error
    return mark
