"""``Idempotency-Key``: a request that is sent again is answered again, and not done again.

The header is that of the IETF's draft "The Idempotency-Key HTTP Header Field".
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import Depends, Header, Request, Response

from kbkit.access import Caller as AccessCaller
from kbkit.errors import ReusedKeyError
from kbkit.rest.access import Caller as CallerOf
from kbkit.rest.access import WorkspaceOf
from kbkit.stores.catalog import replayed_answers
from kbkit.stores.catalog.replayed_answers import ReplayedAnswer
from kbkit.workspace import Workspace, stores_of

_KEPT_HEADERS = ("etag", "location")


class IdempotentRequests:
    """Runs a request once, however often it is sent with one idempotency key."""

    def __init__(
        self, workspace: Workspace, place: str, caller: AccessCaller, key: str | None
    ) -> None:
        self._stores = stores_of(workspace)
        self._place = place
        self._key = key and _digest([caller.name, place, key])

    def __call__(self, values: Any, answer: Callable[[], Response]) -> Response:
        """Return the response, new or stored."""
        if self._key is None:
            return answer()
        digest = _digest([self._place, values])
        with self._stores.locks.hold(f"answer-{self._key}", wait=0, task="answering this request"):
            with self._stores.database.read() as transaction:
                known = replayed_answers.find(transaction, self._key)
            if known is None:
                return self._kept(digest, answer())
        if known.digest != digest:
            raise ReusedKeyError(
                "Idempotency-Key: was used for another request within the last day; use a new one"
            )
        told = {**known.headers, "Idempotency-Replayed": "true"}
        return Response(known.body, known.status, told, known.media_type)

    def _kept(self, digest: str, made: Response) -> Response:
        headers = {name: made.headers[name] for name in _KEPT_HEADERS if name in made.headers}
        kept = ReplayedAnswer(
            digest, made.status_code, headers, bytes(made.body), made.media_type or ""
        )
        with self._stores.database.write() as transaction:
            replayed_answers.keep(transaction, self._key or "", kept)
        return made


def _digest(values: Any) -> str:
    text = json.dumps(values, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _once(
    request: Request,
    caller: CallerOf,
    workspace: WorkspaceOf,
    idempotency_key: Annotated[
        str | None,
        Header(
            description="Made up by the caller for one request: sent again with the same key "
            "within a day, it is answered again and not done again.",
            min_length=1,
            max_length=200,
        ),
    ] = None,
) -> IdempotentRequests:
    return IdempotentRequests(workspace, request.url.path, caller, idempotency_key)


Once = Annotated[IdempotentRequests, Depends(_once)]
"""Parameter of a handler that makes something: has it done once for each key."""
