"""Access tokens of a workspace: create, list, revoke and check."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from kbkit.errors import ConfigError, ForbiddenError, NotFoundError, TokenError
from kbkit.models import TokenInfo
from kbkit.models.files import BUILT_IN
from kbkit.runtime.validation import check_member
from kbkit.stores.catalog import runs
from kbkit.workspace import Workspace, stores_of


class Scope(StrEnum):
    """Scope of a token; each includes those before it."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"

    @property
    def implied(self) -> frozenset[Scope]:
        scopes = list(Scope)
        return frozenset(scopes[: scopes.index(self) + 1])


@dataclass(frozen=True, slots=True)
class Caller:
    """Caller of a server, with the rights of a token."""

    name: str
    """Name of the token; ``""`` if none is needed."""
    scopes: frozenset[Scope]
    kbs: tuple[str, ...] = ()
    """Allowed knowledge bases; empty for all. May include ``files`` and ``entries``."""

    def require(self, scope: Scope) -> None:
        if scope not in self.scopes:
            raise ForbiddenError(
                f"this needs the scope {scope.value}; the token {self.name!r} has "
                f"{', '.join(each.value for each in Scope if each in self.scopes) or 'none'}",
                scope.value,
            )

    def require_kb(self, name: str) -> None:
        if self.kbs and name not in self.kbs:
            raise ForbiddenError(
                f"the token {self.name!r} is not for {name!r}, but for {', '.join(self.kbs)}"
            )

    def require_all_kbs(self) -> None:
        if self.kbs:
            raise ForbiddenError(
                f"this needs the whole workspace, but the token {self.name!r} is only for "
                f"{', '.join(self.kbs)}"
            )

    def restrict(self, kbs: Sequence[str] | None) -> list[str] | None:
        """Return the allowed knowledge bases among the requested ones; ``None`` for all."""
        if kbs is None:
            return list(self.kbs) or None
        for name in kbs:
            self.require_kb(name)
        return list(kbs)

    def visible(self, names: Iterable[str]) -> list[str]:
        return [name for name in names if not self.kbs or name in self.kbs]


ALL = Caller("", frozenset(Scope))
"""A caller with all rights."""


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

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._database = stores_of(workspace).database
        self._lock = threading.Lock()
        self._cache: dict[bytes, tuple[int, TokenInfo]] = {}
        self._used: dict[str, datetime] = {}
        self._has_tokens: tuple[int, bool] | None = None

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
        self._database.commit(runs.add_token, info, _digest(token).hex())
        return NewToken(token, info)

    def list(self) -> list[TokenInfo]:
        self.note_uses()
        return self._database.look_up(runs.list_tokens)

    def revoke(self, name: str) -> TokenInfo:
        return self._database.commit(runs.delete_token, name)

    def any(self) -> bool:
        changes = self._database.changes()
        if self._has_tokens is None or self._has_tokens[0] != changes:
            self._has_tokens = changes, bool(self._database.look_up(runs.list_tokens))
        return self._has_tokens[1]

    def check(self, token: str) -> Caller:
        digest = _digest(token)
        changes = self._database.changes()  # before the lookup, so that no revocation is missed
        cached = self._cache.get(digest)
        info = cached[1] if cached is not None and cached[0] == changes else None
        if info is None:
            info = self._find(token, digest)
            with self._lock:
                if len(self._cache) >= _MAX_CACHED:
                    self._cache.clear()
                self._cache[digest] = changes, info
        now = datetime.now(UTC)
        if info.expires_at is not None and info.expires_at <= now:
            raise TokenError(
                f"the token {info.name!r} has expired; ask for a new one (kbkit token create)"
            )
        self._used[info.id] = now.replace(second=0, microsecond=0)
        return Caller(info.name, Scope(info.scope).implied, info.kbs)

    def _find(self, token: str, digest: bytes) -> TokenInfo:
        if TOKEN.fullmatch(token):
            id_ = token.removeprefix(PREFIX).partition("_")[0]
            row = self._database.look_up(runs.find_token, id_)
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
            self._database.commit(runs.note_uses, used)


class Access:
    """Decides who may call a server."""

    def __init__(self, tokens: Tokens, *, open_to_all: bool) -> None:
        self._tokens = tokens
        self._open = open_to_all

    def caller(self, token: str | None) -> Caller:
        if token is not None:
            return self._tokens.check(token)
        # stays closed after the last token is revoked
        self._open = self._open and not self._tokens.any()
        if self._open:
            return ALL
        raise TokenError(
            "a token is needed: create one with `kbkit token create`, and send it as "
            "Authorization: Bearer TOKEN"
        )


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
