"""Public fakes, for tests of kbkit and of what is built on it. No model, no network.

They do the real thing in small: `HashEmbedder` gives like vectors to texts that share words,
`DocumentsReader` is a source like any other, and `serve_folder` is a real web server.
"""

from __future__ import annotations

import hashlib
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

from kbkit.errors import ConfigError
from kbkit.models import SourceDocument
from kbkit.sources.base import Outcome, SourceContext, SourceEvent

if TYPE_CHECKING:
    from kbkit.embedding.base import Matrix, Vector

_WORD = re.compile(r"\w+")


class HashEmbedder:
    """A deterministic embedder: each word points somewhere, a text at the sum of its words.

    Args:
        dimensions: Length of a vector.
        salt: Part of the fingerprint and of every vector; another salt is another model.
    """

    def __init__(self, dimensions: int = 64, salt: str = "") -> None:
        self._dimensions = dimensions
        self._salt = salt
        self.embedded: list[str] = []
        """Every passage that was embedded, in order; tells what was embedded again."""

    @property
    def fingerprint(self) -> str:
        """Names dimensions and salt."""
        return f"hash:{self._dimensions}:{self._salt}"

    @property
    def dimensions(self) -> int:
        """Length of a vector."""
        return self._dimensions

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        """Embed texts; one without a word gives a zero vector."""
        import numpy as np

        self.embedded.extend(texts)
        vectors = [self._vector(text) for text in texts]
        return np.array(vectors, np.float32).reshape(len(vectors), self._dimensions)

    def embed_query(self, text: str) -> Vector:
        """Embed a question as a passage."""
        return self._vector(text)

    def _vector(self, text: str) -> Vector:
        import numpy as np

        vector = np.zeros(self._dimensions, np.float32)
        for word in _WORD.findall(text.lower()):
            digest = hashlib.sha256(f"{self._salt}\n{word}".encode()).digest()
            generator = np.random.default_rng(int.from_bytes(digest[:8], "big"))
            vector += generator.standard_normal(self._dimensions, np.float32)
        length = float(np.linalg.norm(vector))
        return vector / np.float32(length) if length else vector


class DocumentsReader:
    """A source of documents that are in memory.

    Args:
        documents: What it yields; change `documents` between two reads to play a change.
        exhaustive: Whether a document that is no longer yielded is gone.
    """

    type = "documents"

    def __init__(self, documents: Iterable[SourceDocument], *, exhaustive: bool = True) -> None:
        self.documents = list(documents)
        self.exhaustive = exhaustive

    def events(self, context: SourceContext) -> Iterator[SourceEvent]:
        """One event a document, until the context says stop."""
        for document in self.documents:
            if context.stop():
                return
            yield SourceEvent(document.uri, Outcome.FETCHED, document)


class _QuietHandler(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = os.name != "nt"  # there it would let two servers share a port


@contextmanager
def serve_folder(
    path: Path | str, port: int = 0, *, seen: Callable[[str], None] | None = None
) -> Iterator[str]:
    """Serve a folder on loopback while the block runs.

    Pages carry ``Last-Modified``, and a request that knows it is answered with 304.

    Args:
        path: The folder.
        port: Port on 127.0.0.1; 0 takes a free one.
        seen: Called with the path of each request, from the server's threads.

    Yields:
        The base URL, ending in ``/``.

    Raises:
        ConfigError: There is no such folder, or the port is taken.
    """
    folder = Path(path)
    if not folder.is_dir():
        raise ConfigError(f"{folder}: not a folder; name one that exists")

    class Handler(_QuietHandler):
        def parse_request(self) -> bool:
            understood = super().parse_request()
            if understood and seen:
                seen(self.path)
            return understood

    try:
        server = _Server(("127.0.0.1", port), partial(Handler, directory=str(folder)))
    except (OSError, OverflowError) as error:
        raise ConfigError(
            f"port {port} of 127.0.0.1 cannot be used ({error}); "
            "choose another, or 0 for a free one"
        ) from error
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
