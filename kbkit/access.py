"""Access tokens of a workspace: create, list, revoke and check."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import threading
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple

from kbkit.errors import ConfigError, NotFoundError, TokenError
from kbkit.models import TokenInfo
from kbkit.models.server import ALL, Caller, Scope
from kbkit.models.values import BUILT_IN
from kbkit.runtime.validation import check_member
from kbkit.stores.catalog import jobs
from kbkit.workspace import Workspace, stores_of

PREFIX = "kbkit_"
TOKEN = re.compile(r"kbkit_[0-9a-f]{12}_[A-Za-z0-9_-]{43}")
"""Format of a token: an id, and 256 random bits."""
_NAME = re.compile(r"[\w.@+-][\w .@+-]{0,62}", re.ASCII)
_MAX_DAYS = 3650
_MAX_CACHED = 1024


class NewToken(NamedTuple):
    """A new token with its secret, which is shown only once."""

    token: str
    info: TokenInfo


class Tokens:
    """The tokens of a workspace; safe to use from several threads."""

    def __init__(self, workspace: Workspace, *, open_to_all: bool = False) -> None:
        self._workspace = workspace
        self._open = open_to_all
        self._database = stores_of(workspace).database
        self._lock = threading.Lock()
        self._used: dict[str, datetime] = {}
        self._found = lru_cache(_MAX_CACHED)(self._find)
        self._exist = lru_cache(1)(lambda _: bool(self._database.look_up(jobs.list_tokens)))

    def create(
        self,
        name: str,
        *,
        scope: Scope | str = Scope.READ,
        kbs: Sequence[str] = (),
        days: int | None = None,
    ) -> NewToken:
        if not _NAME.fullmatch(name):
            raise ConfigError(
                f"{name!r}: a token's name has 1 to 63 letters, digits, spaces and . @ + - _"
            )
        token_scope = check_member("scope", scope, Scope)
        if days is not None and not 1 <= days <= _MAX_DAYS:
            raise ConfigError(f"days={days}: give 1 to {_MAX_DAYS:,}, or nothing for no expiry")
        names = [*self._workspace, *BUILT_IN]
        if missing := [kb for kb in kbs if kb not in names]:
            raise NotFoundError(
                f"no knowledge base {missing[0]!r}; there are {', '.join(sorted({*names}))}"
            )
        now = datetime.now(UTC)
        expires_at = None if days is None else now + timedelta(days=days)
        id_ = secrets.token_hex(6)
        token = f"{PREFIX}{id_}_{secrets.token_urlsafe(32)}"
        info = TokenInfo(id_, name, token_scope.value, tuple(dict.fromkeys(kbs)), now, expires_at)
        self._database.commit(jobs.add_token, info, _digest(token).hex())
        return NewToken(token, info)

    def list(self) -> list[TokenInfo]:
        self.note_uses()
        return self._database.look_up(jobs.list_tokens)

    def revoke(self, name: str) -> TokenInfo:
        return self._database.commit(jobs.delete_token, name)

    def any(self) -> bool:
        return self._exist(self._database.changes())

    def caller(self, token: str | None) -> Caller:
        """Return who may call a server with a token or, while none exists, without one."""
        if token is not None:
            return self.check(token)
        # stays closed after the last token is revoked
        self._open = self._open and not self.any()
        if self._open:
            return ALL
        raise TokenError(
            "a token is needed: create one with `kbkit token create`, and send it as "
            "Authorization: Bearer TOKEN"
        )

    def check(self, token: str) -> Caller:
        id_ = token.removeprefix(PREFIX).partition("_")[0] if TOKEN.fullmatch(token) else ""
        info = self._found(_digest(token), id_, self._database.changes())
        now = datetime.now(UTC)
        if info.expires_at is not None and info.expires_at <= now:
            raise TokenError(
                f"the token {info.name!r} has expired; ask for a new one (kbkit token create)"
            )
        self._used[info.id] = now.replace(second=0, microsecond=0)
        return Caller(info.name, Scope(info.scope).implied, info.kbs)

    def _find(self, digest: bytes, id_: str, _changes: int) -> TokenInfo:
        row = self._database.look_up(jobs.find_token, id_)
        # in constant time, even for an unknown id
        stored_digest = bytes.fromhex(row[1]) if row else bytes(len(digest))
        if hmac.compare_digest(stored_digest, digest) and row:
            return row[0]
        raise TokenError("the token is unknown or was revoked; see `kbkit token list`")

    def note_uses(self) -> None:
        """Store when tokens were used; called periodically, because it is slow for a request."""
        with self._lock:
            used, self._used = self._used, {}
        if used:
            self._database.commit(jobs.note_uses, used)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
