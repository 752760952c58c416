"""A connection to a Chroma server with timeouts, and its errors with remedies.

``chromadb.HttpClient`` has no timeouts and leaks memory, so this uses its lower layer.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import httpx

from kbkit.errors import StoreUnreachableError, WorkspaceError
from kbkit.stores.chroma.address import ChromaAddress
from kbkit.stores.chroma.collections import HNSW, OF_A_COLLECTION, import_chromadb

if TYPE_CHECKING:
    from kbkit.stores.chroma.collections import Collection

_CONNECT_SECONDS = 5.0
_ANSWER_SECONDS = 30.0


class ChromaConnection:
    """Collections of one database on a server; raises errors of chromadb and httpx."""

    def __init__(self, address: ChromaAddress) -> None:
        """Connect, and check that tenant and database exist."""
        chromadb = import_chromadb()
        token = address.token
        settings = chromadb.config.Settings(
            anonymized_telemetry=False,
            chroma_api_impl="chromadb.api.fastapi.FastAPI",
            chroma_server_host=address.url,
            chroma_server_http_port=address.port,
            chroma_server_ssl_enabled=address.secure,
            # the first is for Chroma Cloud, the second for proxies
            chroma_server_headers=(
                {"X-Chroma-Token": token, "Authorization": f"Bearer {token}"} if token else None
            ),
        )
        system = chromadb.config.System(settings)
        self._api: Any = system.instance(chromadb.api.ServerAPI)
        self._session: httpx.Client = self._api._session
        self._session.timeout = httpx.Timeout(_ANSWER_SECONDS, connect=_CONNECT_SECONDS)
        self._missing: type[Exception] = chromadb.errors.NotFoundError
        try:
            self._place = {
                "tenant": address.tenant or chromadb.config.DEFAULT_TENANT,
                "database": address.database or chromadb.config.DEFAULT_DATABASE,
            }
            self.most = int(self._api.get_max_batch_size())
            self._api.get_database(self._place["database"], self._place["tenant"])
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._session.close()

    def create(self, name: str) -> Collection:
        # the upper layer would add this key
        wanted = {**HNSW, "embedding_function": None}
        return self._wrapped(self._api.create_collection(name, configuration=wanted, **self._place))

    def get(self, name: str) -> Collection:
        return self._wrapped(self._api.get_collection(name, **self._place))

    def drop(self, name: str) -> None:
        with suppress(self._missing):
            self._api.delete_collection(name, **self._place)

    def _wrapped(self, model: Any) -> Collection:
        from chromadb.api.models.Collection import Collection as Wrapper

        return Wrapper(client=self._api, model=model, embedding_function=None)


_KEPT = "written data is kept and searchable, and is passed on with a later write"
_NO_CHROMA = "answers as no Chroma of version 1; name the address of one in KBKIT_CHROMA_URL"
_MAX_LENGTH = 200


def fault_of(error: Exception, address: ChromaAddress) -> WorkspaceError:
    message = " ".join(str(error).split())
    if address.token:
        message = message.replace(address.token, "...")
    message = message[:_MAX_LENGTH]
    if type(error).__module__ == "chromadb.errors":
        if message.startswith(("Tenant [", "Database [")):
            reason = (
                f"{message.partition('. ')[0]}; make it, or name another "
                "(?tenant=NAME&database=NAME)"
            )
            return StoreUnreachableError(f"{address.place}: {reason}")
        if type(error).__name__ in OF_A_COLLECTION:
            return WorkspaceError(f"{address.place}: Chroma refused: {message}")
    return StoreUnreachableError(f"{address.place}: {_reason(error, message, address)}; {_KEPT}")


def _reason(error: Exception, text: str, address: ChromaAddress) -> str:
    status = _status(error)
    if status in (401, 403):
        token = "is not taken" if address.token else "is not set"
        return f"the server refuses ({status}): KBKIT_CHROMA_TOKEN {token}"
    if status == 429 or type(error).__name__ == "QuotaError":
        return f"the server refuses for now, its quota is used up ({text})"
    if status is not None and status >= 500:
        return f"Chroma failed ({status}: {text}); see its log"
    if isinstance(error, httpx.TimeoutException):
        return "no answer in time; check that the server runs and is reachable"
    if "CERTIFICATE_VERIFY_FAILED" in text:
        return (
            f"its certificate is not trusted ({text}); name the file of its authority in "
            "SSL_CERT_FILE"
        )
    if "[SSL" in text:
        return f"it does not speak TLS there ({text}); write http:// where it has none"
    if isinstance(error, httpx.NetworkError):
        return f"cannot be reached ({text}); see that the server runs, or mend KBKIT_CHROMA_URL"
    if isinstance(error, httpx.ProtocolError | ValueError | KeyError | TypeError) or status:
        return _NO_CHROMA
    return f"Chroma failed ({type(error).__name__}: {text})"


def _status(error: Exception) -> int | None:
    if type(error).__module__ == "chromadb.errors":
        code: int = error.code()  # type: ignore[attr-defined]
        return code
    cause = error.__context__  # chromadb raises a bare exception for HTTP errors
    return cause.response.status_code if isinstance(cause, httpx.HTTPStatusError) else None
