"""A connection to a Chroma server, with timeouts.

``chromadb.HttpClient`` waits for a silent server for ever, and each one that is made leaves things
behind in its process. So the object that it hands all calls to is used by itself.
"""

from __future__ import annotations

import hashlib
import ipaddress
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx
import numpy as np
from numpy.typing import NDArray

from kbkit.errors import ConfigError, StoreUnreachableError, WorkspaceError
from kbkit.stores.chroma.collections import (
    HNSW,
    OF_A_COLLECTION,
    ChromaCollections,
    import_chromadb,
)
from kbkit.stores.vector_store import VectorPayload

if TYPE_CHECKING:
    from kbkit.stores.chroma.collections import Collection


_ADVICE = "write http://HOST:PORT or https://HOST, with ?tenant=NAME&database=NAME where needed"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,126}[A-Za-z0-9]")


@dataclass(frozen=True, slots=True)
class ChromaAddress:
    """Address of a Chroma server; its text omits the token.

    Attributes:
        tenant: Tenant; empty for the server's default.
        database: Database; empty for the tenant's default.
        token: Sent with each request; empty for none.
    """

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
        """The address without the token, as `parse` reads it."""
        return self.url + self._query

    @property
    def _query(self) -> str:
        names = {"tenant": self.tenant, "database": self.database}
        told = urlencode({name: value for name, value in names.items() if value})
        return f"?{told}" if told else ""

    @classmethod
    def parse(cls, url: str, token: str = "") -> ChromaAddress:
        """Read an address."""
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
            raise ConfigError(f"KBKIT_CHROMA_URL is no address of a server; {_ADVICE}")
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
        found = cls(
            f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}", **names, token=token
        )
        found._check_token(parts.hostname or "")
        return found

    def _check_token(self, host: str) -> None:
        if not self.token.isascii() or not self.token.isprintable() or " " in self.token:
            raise ConfigError(
                "KBKIT_CHROMA_TOKEN has characters that no token has; copy it as it was shown"
            )
        if self.token and not self.secure and not _is_loopback(host):
            raise ConfigError(
                f"KBKIT_CHROMA_URL: {host} would be sent KBKIT_CHROMA_TOKEN for all to read on the "
                "way; write https://, or leave the token out where none is wanted"
            )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


_CONNECT_SECONDS = 5.0
_ANSWER_SECONDS = 30.0


class ChromaConnection:
    """Collections of one database on a server.

    Errors are those of chromadb and httpx.
    """

    def __init__(self, address: ChromaAddress) -> None:
        """Connect, and make sure that there is a Chroma with that tenant and database."""
        chromadb = import_chromadb()
        token = address.token
        settings = chromadb.config.Settings(
            anonymized_telemetry=False,
            chroma_api_impl="chromadb.api.fastapi.FastAPI",
            chroma_server_host=address.url,
            chroma_server_http_port=address.port,
            chroma_server_ssl_enabled=address.secure,
            # Chroma Cloud reads the first, proxies the second
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
        # this layer wants the key that the one above would add
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
    told = " ".join(str(error).split())
    if address.token:
        told = told.replace(address.token, "...")
    told = told[:_MAX_LENGTH]
    if type(error).__module__ == "chromadb.errors":
        if told.startswith(("Tenant [", "Database [")):
            reason = (
                f"{told.partition('. ')[0]}; make it, or name another (?tenant=NAME&database=NAME)"
            )
            return StoreUnreachableError(f"{address.place}: {reason}")
        if type(error).__name__ in OF_A_COLLECTION:
            return WorkspaceError(f"{address.place}: Chroma refused: {told}")
    return StoreUnreachableError(f"{address.place}: {_reason(error, told, address)}; {_KEPT}")


def _reason(error: Exception, told: str, address: ChromaAddress) -> str:
    status = _status(error)
    if status in (401, 403):
        token = "is not taken" if address.token else "is not set"
        return f"the server refuses ({status}): KBKIT_CHROMA_TOKEN {token}"
    if status == 429 or type(error).__name__ == "QuotaError":
        return f"the server refuses for now, its quota is used up ({told})"
    if status is not None and status >= 500:
        return f"Chroma failed ({status}: {told}); see its log"
    if isinstance(error, httpx.TimeoutException):
        return "no answer in time; check that the server runs and is reachable"
    if "CERTIFICATE_VERIFY_FAILED" in told:
        return (
            f"its certificate is not trusted ({told}); name the file of its authority in "
            "SSL_CERT_FILE"
        )
    if "[SSL" in told:
        return f"it does not speak TLS there ({told}); write http:// where it has none"
    if isinstance(error, httpx.NetworkError):
        return f"cannot be reached ({told}); see that the server runs, or mend KBKIT_CHROMA_URL"
    if isinstance(error, httpx.ProtocolError | ValueError | KeyError | TypeError) or status:
        return _NO_CHROMA
    return f"Chroma failed ({type(error).__name__}: {told})"


def _status(error: Exception) -> int | None:
    if type(error).__module__ == "chromadb.errors":
        code: int = error.code()  # type: ignore[attr-defined]
        return code
    cause = error.__context__  # chromadb raises a bare exception instead
    return cause.response.status_code if isinstance(cause, httpx.HTTPStatusError) else None


# what Chroma Cloud takes of an account that has not asked for more
_RECORDS = 300
_RESULTS = 300
_DOCUMENT_BYTES = 16_384
_METADATA_BYTES = 4_096


class ChromaServer(ChromaCollections):
    """A `kbkit.stores.vector_store.VectorStore` on a server."""

    def __init__(self, address: ChromaAddress, workspace: str) -> None:
        super().__init__()
        self.address = address
        self.suffix = hashlib.blake2b(workspace.encode(), digest_size=6).hexdigest()
        self._connection: ChromaConnection | None = None

    def close(self) -> None:
        """Close the connection; the next call opens one again."""
        self._collections.clear()
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def reopen(self) -> None:
        """List the collections again; a connection recovers by itself."""
        self._collections.clear()
        with self._explained():
            self._connected()

    def settle(self) -> None:
        """Do nothing: the server takes care of it."""

    def nearest(self, name: str, query: NDArray[np.float32], k: int) -> list[str]:
        """Ids of the ``k`` vectors nearest to a unit vector, nearest first; 300 at most."""
        return super().nearest(name, query, min(k, _RESULTS))

    def _connected(self) -> ChromaConnection:
        if self._connection is None:
            self._connection = ChromaConnection(self.address)
        return self._connection

    def _most(self) -> int:
        return min(_RECORDS, self._connected().most)

    def _made(self, name: str) -> Collection:
        return self._connected().create(name)

    def _found(self, name: str) -> Collection:
        return self._connected().get(name)

    def _dropped(self, name: str) -> None:
        self._connected().drop(name)

    def _fitting(self, payload: VectorPayload) -> VectorPayload:
        """Shorten long texts, and leave out metadata that do not fit."""
        kept, left = {}, _METADATA_BYTES
        for name, value in payload.metadata.items():
            values = value if isinstance(value, list) else [value]
            left -= len(name) + sum(len(str(each).encode()) for each in values)
            if left < 0:
                break
            kept[name] = value
        return VectorPayload(payload.text.encode()[:_DOCUMENT_BYTES].decode(errors="ignore"), kept)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except WorkspaceError:
            raise
        except Exception as error:
            raise fault_of(error, self.address) from error
