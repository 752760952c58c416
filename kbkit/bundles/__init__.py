"""Bundles: knowledge bases in one portable file.

A bundle is a zip file. ``manifest.json`` lists format, versions, knowledge bases, and the other
members with sizes and SHA-256; ``tables/*.jsonl`` are rows of the catalog, one JSON object per
line; ``images/``, ``files/`` and ``entries/`` are files. An optional ``signature.json`` is a DSSE
envelope around the manifest. Here a bundle is written: the same content gives the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, Self

from kbkit.errors import BundleError, ConflictError

FORMAT = 2
MANIFEST = "manifest.json"
SIGNATURE = "signature.json"
_BEGIN = (1980, 1, 1, 0, 0, 0)  # modification time of all members
_LEVEL = 6
_ENDING = ".kbkit.zip"


def bundle_path(place: str | Path) -> Path:
    path = Path(place).absolute()
    if path.is_dir():
        now = datetime.now(UTC)
        path /= f"kbkit-{now:%Y-%m-%dT%H-%M-%SZ}{_ENDING}"
    if not path.parent.is_dir():
        raise BundleError(f"{path.parent}: is no folder; make it, or name another file")
    if os.path.lexists(path):
        raise ConflictError(f"{path}: is there already; choose another name")
    return path


class NewFile:
    """A file under a temporary name until it is complete."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with unwritten(path):
            handle, draft = tempfile.mkstemp(dir=path.parent, prefix=".kbkit-", suffix=".part")
        self._draft = Path(draft)
        self.stream: IO[bytes] = os.fdopen(handle, "w+b")

    def empty(self) -> None:
        with unwritten(self.path):
            self.stream.seek(0)
            self.stream.truncate()

    def write(self, part: bytes) -> None:
        with unwritten(self.path):
            self.stream.write(part)

    def sign(self, sign: Callable[[bytes], bytes]) -> None:
        with unwritten(self.path), zipfile.ZipFile(self.stream, "a") as archive:
            envelope = sign(archive.read(MANIFEST))
            with archive.open(_about(SIGNATURE), "w", force_zip64=True) as stream:
                stream.write(envelope)

    def finish(self) -> None:
        with unwritten(self.path):
            self.stream.flush()
            os.fsync(self.stream.fileno())
            self.stream.close()
            bundle_path(self.path)
            self._draft.replace(self.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):  # a full disk has no room for buffered bytes
            self.stream.close()
        self._draft.unlink(missing_ok=True)


class BundleWriter:
    """A bundle under a temporary name until it is complete."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._members: dict[str, dict[str, Any]] = {}
        self._file = NewFile(path)
        self._zip = zipfile.ZipFile(self._file.stream, "w")

    def add(self, name: str, parts: Iterable[bytes]) -> None:
        digest, size = hashlib.sha256(), 0
        with self._open(name) as stream:
            for part in parts:
                digest.update(part)
                size += len(part)
                stream.write(part)
        self._members[name] = {"bytes": size, "sha256": digest.hexdigest()}

    def add_rows(self, name: str, rows: Iterable[Mapping[str, Any]]) -> int:
        """Add a member of JSON lines; return their number."""
        count = 0

        def lines() -> Iterator[bytes]:
            nonlocal count
            for row in rows:
                count += 1
                text = json.dumps(row, ensure_ascii=False, separators=(",", ":"))
                # replaces lone surrogates, which UTF-8 cannot encode
                yield text.encode("utf-8", "replace") + b"\n"

        self.add(name, lines())
        return count

    def finish(self, values: Mapping[str, Any], sign: Callable[[bytes], bytes] | None) -> str:
        about = {"format": FORMAT, **values, "members": dict(sorted(self._members.items()))}
        manifest = json.dumps(about, indent=1, ensure_ascii=False).encode() + b"\n"
        with self._open(MANIFEST) as stream:
            stream.write(manifest)
        if sign is not None:
            with self._open(SIGNATURE) as stream:
                stream.write(sign(manifest))
        with unwritten(self.path):
            self._zip.close()
        self._file.finish()
        return hashlib.sha256(manifest).hexdigest()

    @contextmanager
    def _open(self, name: str) -> Iterator[IO[bytes]]:
        entry = _about(name)
        with unwritten(self.path), self._zip.open(entry, "w", force_zip64=True) as stream:
            yield stream

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            self._zip.fp = None  # a discarded file needs no central directory
        self._file.__exit__()


def _about(name: str) -> zipfile.ZipInfo:
    about = zipfile.ZipInfo(name, _BEGIN)
    about.compress_type = zipfile.ZIP_DEFLATED
    about._compresslevel = _LEVEL  # type: ignore[attr-defined]  # public from 3.13 on
    about.external_attr = 0o644 << 16
    about.create_system = 3  # the same on all systems
    return about


@contextmanager
def unwritten(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise BundleError(
            f"{path}: cannot be written ({error.strerror}); name a file in a folder that you may "
            "write to, with room for it"
        ) from error
