"""A hub of models: what it lists of one, and downloads of its files in pieces.

`huggingface_hub` is not used for it: its downloads go past address checks and have no bound on
their size.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from kbkit.embedding.model_config import is_inside
from kbkit.errors import EmbedderError, EmbedderUnreachableError
from kbkit.sources.base import Outcome
from kbkit.sources.web.fetch import Fetcher, Response

PIECE = 16_000_000
"""Bytes that are asked for at once: what is kept when the rest fails."""


@dataclass(frozen=True, slots=True)
class HubFile:
    """A file as the hub lists it; its SHA-256 and Git hash where the hub tells them."""

    name: str
    size: int
    sha256: str = ""
    blob: str = ""


@dataclass(frozen=True, slots=True)
class Listing:
    """The files of one revision of a model, and the commit that it is."""

    revision: str
    files: Mapping[str, HubFile]


class Hub:
    """What is asked of the hub, for one model."""

    def __init__(self, fetcher: Fetcher, url: str, repository: str) -> None:
        self._fetcher = fetcher
        self._url = url.rstrip("/")
        self.repository = repository

    def listing(self, revision: str) -> Listing:
        """The files of a revision, and the commit that it is."""
        asked = quote(revision, safe="")
        url = f"{self._url}/api/models/{self.repository}/revision/{asked}?blobs=true"
        response = self._get(url, f"{self.repository} at {revision}")
        try:
            told = json.loads(response.body)
            commit = str(told["sha"])
            siblings = told["siblings"]
            files = [_file(entry) for entry in siblings]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise EmbedderError(
                f"{url}: not a list of a model's files; is KBKIT_MODELS_URL a hub?"
            ) from error
        if not commit.isalnum() or len(commit) > 64:
            raise EmbedderError(f"{url}: names no commit; is KBKIT_MODELS_URL a hub?")
        return Listing(commit, {file.name: file for file in files if is_inside(file.name)})

    def download(
        self, file: HubFile, revision: str, path: Path, told: Callable[[int], None]
    ) -> None:
        """A file, piece by piece, going on with what is there."""
        url = f"{self._url}/{self.repository}/resolve/{revision}/{quote(file.name)}"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as stream:
            if stream.tell() > file.size:
                stream.truncate(0)
            while (start := stream.tell()) < file.size:
                end = min(start + PIECE, file.size)
                what = f"{self.repository}: {file.name}"
                response = self._get(url, what, span=(start, end), limit=file.size)
                body = response.body
                if response.status != 206 and start:  # it gave all, from the beginning
                    body = body[start:]
                if not body or start + len(body) > file.size:
                    raise EmbedderError(
                        f"{url}: {len(response.body):,} bytes came from {start:,} on, of a file of "
                        f"{file.size:,}; try again, or choose another revision"
                    )
                stream.write(body)
                told(len(body))

    def _get(
        self,
        url: str,
        what: str,
        *,
        span: tuple[int, int] | None = None,
        limit: int | None = None,
    ) -> Response:
        # a server that knows no ranges gives all: as much as the file has, at most
        response = self._fetcher.get(url, span=span, max_bytes=limit)
        if response.outcome is Outcome.FETCHED:
            return response
        host = urlsplit(self._url).netloc
        if response.outcome is Outcome.GONE or response.status in (401, 403):
            raise EmbedderError(
                f"{what}: {host} has no such model, revision or file that everybody may read "
                f"({response.reason}); check the name"
            )
        if response.outcome is Outcome.SKIPPED:
            raise EmbedderError(f"{what}: refused ({response.reason})")
        raise EmbedderUnreachableError(
            f"{what}: {host} cannot be asked ({response.reason}); check the network, or set "
            "KBKIT_MODELS_URL to a mirror, and fetch again: what came is kept"
        )


def _file(entry: Mapping[str, Any]) -> HubFile:
    large = entry.get("lfs") or {}
    return HubFile(
        str(entry["rfilename"]),
        int(large.get("size", entry.get("size", -1))),
        str(large.get("sha256", "")).lower(),
        "" if large else str(entry.get("blobId", "")).lower(),
    )
