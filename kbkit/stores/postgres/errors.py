"""Errors of PostgreSQL with remedies."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, TimeoutError

from kbkit.errors import WorkspaceError

_GONE = "see that the server runs and can be reached, and run this again; nothing half done is kept"
_STATES = {
    "28P01": "check the user and the password of the database's address",
    "28000": "the server rejects this user from this host: ask its administrator (pg_hba.conf)",
    "3D000": "make the database (createdb), or name another",
    "42501": "the user may not do this: grant it to write to the schema, or use another user",
    "25006": "the server is read-only, as a standby is: name the one that is written to",
    "55P03": "another process has been writing for long; run this again",
    "53100": "the server's disk is full: free some space, and run this again",
    "53300": "the server has no connection left: raise max_connections, or use a pooler",
}
_SIGNS = {
    "password authentication failed": _STATES["28P01"],
    "no password supplied": _STATES["28P01"],
    "no pg_hba.conf entry": _STATES["28000"],
    "role": "check the user of the database's address",
    "remaining connection slots": _STATES["53300"],
    "too many clients": _STATES["53300"],
    "does not exist": _STATES["3D000"],
}


@contextmanager
def explained(place: str) -> Iterator[None]:
    try:
        yield
    except TimeoutError as error:
        raise WorkspaceError(
            f"{place}: all connections of this process are in use; run this again"
        ) from error
    except DBAPIError as error:
        # not the message of SQLAlchemy, which contains statement and values
        text = " ".join(str(error.orig).split())
        state = getattr(error.orig, "sqlstate", None) or ""
        advice = _STATES.get(state)
        if advice is None and error.connection_invalidated:
            advice = _GONE
        if advice is None and state[:2] in ("08", "57"):
            advice = _GONE
        if advice is None and not state:  # the connection failed
            advice = next((hint for sign, hint in _SIGNS.items() if sign in text), _GONE)
        if advice is None:
            raise
        raise WorkspaceError(f"{place}: {text}; {advice}") from error
