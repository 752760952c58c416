"""Caller: who asks something of a server, and what they may."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from kbkit.errors import ForbiddenError


class Scope(StrEnum):
    """What a token is good for; each takes in those before it."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"

    @property
    def implied(self) -> frozenset[Scope]:
        """It and those that it takes in."""
        scopes = list(Scope)
        return frozenset(scopes[: scopes.index(self) + 1])


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks something of a server.

    Attributes:
        name: What their token is called; ``""`` where none is needed.
        scopes: What they may do, implied scopes included.
        kbs: Names of the only knowledge bases that they may use; empty for all. ``files`` and
            ``entries`` are those of the knowledge filesystem and the entries.
    """

    name: str
    scopes: frozenset[Scope]
    kbs: tuple[str, ...] = ()

    def require(self, scope: Scope) -> None:
        """Let them do what needs a scope.

        Raises:
            ForbiddenError: They have not got it.
        """
        if scope not in self.scopes:
            raise ForbiddenError(
                f"this needs the scope {scope.value}; the token {self.name!r} has "
                f"{', '.join(each.value for each in Scope if each in self.scopes) or 'none'}",
                scope.value,
            )

    def require_kb(self, name: str) -> None:
        """Let them use a knowledge base.

        Raises:
            ForbiddenError: It is none of theirs, whether there is one of that name or not.
        """
        if self.kbs and name not in self.kbs:
            raise ForbiddenError(
                f"the token {self.name!r} is not for {name!r}, but for {', '.join(self.kbs)}"
            )

    def require_all_kbs(self) -> None:
        """Let them do what concerns the whole workspace.

        Raises:
            ForbiddenError: They may use some knowledge bases only.
        """
        if self.kbs:
            raise ForbiddenError(
                f"this concerns all of the workspace, and the token {self.name!r} is for "
                f"{', '.join(self.kbs)} only"
            )

    def restrict(self, kbs: Sequence[str] | None) -> list[str] | None:
        """The knowledge bases to ask, of those that somebody names; ``None`` for all.

        Raises:
            ForbiddenError: One of them is none of theirs.
        """
        if kbs is None:
            return list(self.kbs) or None
        for name in kbs:
            self.require_kb(name)
        return list(kbs)

    def visible(self, names: Iterable[str]) -> list[str]:
        """Those of some knowledge bases that they may know of."""
        return [name for name in names if not self.kbs or name in self.kbs]


ALL = Caller("", frozenset(Scope))
"""Somebody who may do everything: who works in the folder, or on its own machine."""
