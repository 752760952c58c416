"""Tokens: what somebody shows a server to be let in, as far as it may be told."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from kbkit.models.values import Value


@dataclass(frozen=True, slots=True)
class TokenInfo(Value):
    """What is known of a token; its secret is not.

    Attributes:
        id: The part of it that is no secret.
        name: What it is called, such as whom it was given to.
        scope: ``read``, ``write`` or ``admin``; each takes in those before it.
        kbs: Names of the only knowledge bases that it is for; empty for all.
        created_at: When it was made (UTC).
        expires_at: When it ends; ``None`` for never.
        used_at: When it was last used, to the minute; ``None`` for never.
    """

    id: str
    name: str
    scope: str
    kbs: tuple[str, ...]
    created_at: datetime
    expires_at: datetime | None = None
    used_at: datetime | None = None
