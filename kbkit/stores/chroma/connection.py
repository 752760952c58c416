"""A connection to a Chroma server, with timeouts.

``chromadb.HttpClient`` has none and leaks memory, so this uses the object below it.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import httpx

from kbkit.stores.chroma.address import ChromaAddress
from kbkit.stores.chroma.collections import HNSW, import_chromadb

if TYPE_CHECKING:
    from kbkit.stores.chroma.collections import Collection

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
