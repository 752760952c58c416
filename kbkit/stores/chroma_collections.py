"""Collections of Chroma, in a folder or on a server."""

from __future__ import annotations

import hashlib
import re
import sys
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import parse_qsl, urlencode, urlsplit

import numpy as np
from numpy.typing import NDArray

from kbkit.errors import ConfigError, StoreUnreachableError, WorkspaceError
from kbkit.stores.backend import CollectionError, VectorPayload, VectorStore

if TYPE_CHECKING:
    from chromadb.api.models import Collection as CollectionModule

    Collection: TypeAlias = CollectionModule.Collection

_BATCH = 1_000
HNSW: Any = {"hnsw": {"space": "cosine", "ef_construction": 80, "ef_search": 200}}
"""HNSW parameters. With the default ``ef_construction`` (100), adding takes 4/3 of the time, and
recall@100 on 30,000 chunks of documentation is 0.987 instead of 0.984."""

OF_A_COLLECTION = (
    "NotFoundError",
    "InvalidArgumentError",
    "InvalidDimensionException",
    "UniqueConstraintError",
    "ChromaError",
)
"""Chroma's errors about missing, existing or incompatible collections."""


class ChromaCollections(VectorStore):
    """A `kbkit.stores.backend.VectorStore` on Chroma's ``ServerAPI``.

    ``chromadb.PersistentClient`` caches its systems, ``chromadb.HttpClient`` leaks them and has no
    timeouts.
    """

    most_records = _BATCH  # per call

    def __init__(self) -> None:
        self._collections: dict[str, Collection] = {}
        self._api: Any = None
        self._place: dict[str, str] = {}

    @abstractmethod
    def _connect(self) -> Any:
        """Return Chroma's API; open it if needed."""

    @abstractmethod
    def _explain_errors(self) -> AbstractContextManager[None]:
        """Convert Chroma's errors to kbkit's."""

    def _changing(self) -> AbstractContextManager[None]:
        return self._explain_errors()

    def _fitting(self, payload: VectorPayload) -> VectorPayload:
        return payload

    def create(self, name: str, dimensions: int) -> None:
        """Create an empty collection; Chroma takes the dimensions from the first vectors."""
        with self._changing():
            # the upper layer would add this key; the default one would download a model
            config = {**HNSW, "embedding_function": None}
            model = self._connect().create_collection(name, configuration=config, **self._place)
            self._collections[name] = self._wrap(model)

    def drop(self, name: str) -> None:
        self._collections.pop(name, None)
        with self._changing(), suppress(import_chromadb().errors.NotFoundError):
            self._connect().delete_collection(name, **self._place)

    def count(self, name: str) -> int:
        with self._explain_errors():
            return self._collection(name).count()

    def items(self, name: str) -> Iterator[tuple[list[str], NDArray[np.float32]]]:
        with self._explain_errors():
            collection = self._collection(name)
            for part in self._parts(sys.maxsize):
                size = part.stop - part.start
                page = collection.get(limit=size, offset=part.start, include=["embeddings"])
                if not page["ids"]:
                    return
                yield list(page["ids"]), np.asarray(page["embeddings"], np.float32)

    def upsert(
        self,
        name: str,
        ids: Sequence[str],
        vectors: NDArray[np.float32],
        payloads: Sequence[VectorPayload] | None = None,
    ) -> None:
        """Store vectors, replacing those with the same ids; payloads make this 3 times slower."""
        with self._changing():
            for part in self._parts(len(ids)):
                fitted = [self._fitting(each) for each in payloads[part]] if payloads else None
                self._collection(name).upsert(
                    ids=list(ids[part]),
                    embeddings=vectors[part],
                    metadatas=[_metadata(each) for each in fitted] if fitted else None,
                    documents=[each.text for each in fitted] if fitted else None,
                )

    def delete(self, name: str, ids: Sequence[str]) -> None:
        with self._changing():
            for part in self._parts(len(ids)):
                self._collection(name).delete(ids=list(ids[part]))

    def nearest(self, name: str, query: NDArray[np.float32], k: int) -> list[str]:
        with self._explain_errors():
            result = self._collection(name).query(
                query_embeddings=query[None, :], n_results=k, include=[]
            )
            return list(result["ids"][0])

    def _collection(self, name: str) -> Collection:
        collection = self._collections.get(name)
        if collection is None:
            try:
                model = self._connect().get_collection(name, **self._place)
            except Exception as error:
                if str(error) != f"Collection [{name}] does not exist":
                    raise
                raise CollectionError(f"Chroma has no collection {name}") from error
            collection = self._collections[name] = self._wrap(model)
        return collection

    def _wrap(self, model: Any) -> Collection:
        from chromadb.api.models.Collection import Collection as Wrapper

        return Wrapper(client=self._api, model=model, embedding_function=None)

    def _parts(self, count: int) -> Iterator[slice]:
        size = min(self.most_records, int(self._connect().get_max_batch_size()))
        return (slice(start, start + size) for start in range(0, count, size))


def _metadata(payload: VectorPayload) -> dict[str, Any]:
    return {name: value for name, value in payload.metadata.items() if value != []}


def import_chromadb() -> ModuleType:
    """Import chromadb without rfc3987-syntax, which jsonschema would import for 2 seconds.

    JupyterLab installs it; jsonschema works without it.
    """
    slow = "rfc3987_syntax"
    hide = slow not in sys.modules
    if hide:
        sys.modules[slow] = None  # type: ignore[assignment]  # documented: makes import fail
    try:
        import chromadb
        import chromadb.config
    finally:
        if hide:
            del sys.modules[slow]
    return chromadb


# default quotas of Chroma Cloud
_RECORDS = 300
_RESULTS = 300
_DOCUMENT_BYTES = 16_384
_METADATA_BYTES = 4_096
_CONNECT_SECONDS = 5.0
_ANSWER_SECONDS = 30.0


class ChromaServer(ChromaCollections):
    """A `kbkit.stores.backend.VectorStore` on a server.

    Collections are kept if the server does not answer; faulty ones are rebuilt from the catalog.
    """

    most_records = _RECORDS

    def __init__(self, address: ChromaAddress, workspace: str) -> None:
        super().__init__()
        self.address = address
        self.suffix = hashlib.blake2b(workspace.encode(), digest_size=6).hexdigest()

    def close(self) -> None:
        self._collections.clear()
        if self._api is not None:
            self._api._session.close()
            self._api = None

    def reopen(self) -> None:
        """Forget the open collections; the connection recovers by itself."""
        self._collections.clear()
        with self._explain_errors():
            self._connect()

    def nearest(self, name: str, query: NDArray[np.float32], k: int) -> list[str]:
        return super().nearest(name, query, min(k, _RESULTS))

    def _connect(self) -> Any:
        """Connect, and check that tenant and database exist."""
        if self._api is not None:
            return self._api
        import httpx

        chromadb, address = import_chromadb(), self.address
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
        api: Any = chromadb.config.System(settings).instance(chromadb.api.ServerAPI)
        api._session.timeout = httpx.Timeout(_ANSWER_SECONDS, connect=_CONNECT_SECONDS)
        self._place = {
            "tenant": address.tenant or chromadb.config.DEFAULT_TENANT,
            "database": address.database or chromadb.config.DEFAULT_DATABASE,
        }
        try:
            int(api.get_max_batch_size())  # fails if it is not a server of Chroma
            api.get_database(self._place["database"], self._place["tenant"])
        except BaseException:
            api._session.close()
            raise
        self._api = api
        return api

    def _fitting(self, payload: VectorPayload) -> VectorPayload:
        fitting, remaining = {}, _METADATA_BYTES
        for name, value in payload.metadata.items():
            values = value if isinstance(value, list) else [value]
            remaining -= len(name) + sum(len(str(each).encode()) for each in values)
            if remaining < 0:
                break
            fitting[name] = value
        return VectorPayload(
            payload.text.encode()[:_DOCUMENT_BYTES].decode(errors="ignore"), fitting
        )

    @contextmanager
    def _explain_errors(self) -> Iterator[None]:
        try:
            yield
        except WorkspaceError:
            raise
        except Exception as error:
            raise fault_of(error, self.address) from error


_KEPT = "written data is kept and searchable, and is passed on with a later write"
_NO_CHROMA = "is not a Chroma server of version 1; give the address of one in KBKIT_CHROMA_URL"
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
            return CollectionError(f"{address.place}: Chroma refused: {message}")
    return StoreUnreachableError(f"{address.place}: {_reason(error, message, address)}; {_KEPT}")


def _reason(error: Exception, text: str, address: ChromaAddress) -> str:
    import httpx

    status: int | None = None
    cause = error.__context__  # chromadb raises a bare exception for HTTP errors
    if type(error).__module__ == "chromadb.errors":
        status = error.code()  # type: ignore[attr-defined]
    elif isinstance(cause, httpx.HTTPStatusError):
        status = cause.response.status_code
    if status in (401, 403):
        token = "is not accepted" if address.token else "is not set"
        return f"the server refuses ({status}): KBKIT_CHROMA_TOKEN {token}"
    if status == 429 or type(error).__name__ == "QuotaError":
        return f"the server refuses for now, its quota is used up ({text})"
    if status is not None and status >= 500:
        return f"Chroma failed ({status}: {text}); see its log"
    if isinstance(error, httpx.TimeoutException | httpx.NetworkError):
        return (
            f"cannot be reached ({text or type(error).__name__}); see that the server runs and its "
            "certificate is trusted (SSL_CERT_FILE), or correct KBKIT_CHROMA_URL"
        )
    if isinstance(error, httpx.ProtocolError | ValueError | KeyError | TypeError) or status:
        return _NO_CHROMA
    return f"Chroma failed ({type(error).__name__}: {text})"


_ADVICE = "write http://HOST:PORT or https://HOST, with ?tenant=NAME&database=NAME where needed"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,126}[A-Za-z0-9]")


@dataclass(frozen=True, slots=True)
class ChromaAddress:
    """Address of a Chroma server; empty fields mean the server's defaults."""

    url: str
    tenant: str = ""
    database: str = ""
    token: str = field(default="", repr=False)

    @property
    def secure(self) -> bool:
        return self.url.startswith("https:")

    @property
    def port(self) -> int:
        return urlsplit(self.url).port or (443 if self.secure else 80)

    @property
    def place(self) -> str:
        """The address without the token, for `parse`."""
        names = {"tenant": self.tenant, "database": self.database}
        query = urlencode({name: value for name, value in names.items() if value})
        return f"{self.url}?{query}" if query else self.url

    @classmethod
    def parse(cls, url: str, token: str = "") -> ChromaAddress:
        try:
            parts = urlsplit(url)
            usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
            query = parts.query
            names = dict(
                parse_qsl(query, keep_blank_values=True, strict_parsing=True) if query else ()
            )
        except ValueError:
            usable, names = False, {}
        if not url.isascii() or not url.isprintable() or " " in url or not usable:
            raise ConfigError(f"KBKIT_CHROMA_URL is not a server's address; {_ADVICE}")
        if parts.username is not None or parts.password is not None:
            raise ConfigError(
                "KBKIT_CHROMA_URL contains a user or a password; leave them out, and set the "
                "server's token as KBKIT_CHROMA_TOKEN"
            )
        if parts.fragment or not names.keys() <= {"tenant", "database"}:
            raise ConfigError(
                f"KBKIT_CHROMA_URL: nothing but tenant and database may follow it; {_ADVICE}"
            )
        if not all(_NAME.fullmatch(name) for name in names.values()):
            raise ConfigError(
                "KBKIT_CHROMA_URL: a tenant and a database have 3 to 128 letters, digits, "
                "'.', '_' or '-', with a letter or a digit at both ends"
            )
        address = cls(
            f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}", **names, token=token
        )
        address._check_token(parts.hostname or "")
        return address

    def _check_token(self, host: str) -> None:
        from kbkit.runtime.web_server import is_loopback

        if not self.token.isascii() or not self.token.isprintable() or " " in self.token:
            raise ConfigError(
                "KBKIT_CHROMA_TOKEN has characters that no token has; copy it as it was shown"
            )
        if self.token and not self.secure and not is_loopback(host):
            raise ConfigError(
                f"KBKIT_CHROMA_URL: KBKIT_CHROMA_TOKEN would be sent to {host} unencrypted; "
                "write https://, or leave out the token if the server needs none"
            )
