"""Find and verify model files without importing the packages that contain them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib import metadata
from pathlib import Path

from kbkit.errors import EmbedderError


def distribution_file(distribution: str, name: str) -> Path | None:
    """Find a file of an installed distribution by its name; cached while the file exists."""
    if (cached := _paths.get((distribution, name))) and cached.is_file():
        return cached
    try:
        files = metadata.distribution(distribution).files or []
    except metadata.PackageNotFoundError:
        return None
    for file in files:
        if file.match(name):
            path = Path(str(file.locate()))
            if path.is_file():
                _paths[distribution, name] = path
                return path
    return None


_paths: dict[tuple[str, str], Path] = {}


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal; cached while the file is unchanged."""
    return _sha256(path, file_version(path))


def file_version(path: Path) -> tuple[int, int]:
    with _reading(path):
        status = path.stat()
    return status.st_size, status.st_mtime_ns


@lru_cache(maxsize=32)
def _sha256(path: Path, _version: tuple[int, int]) -> str:
    with _reading(path), path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise EmbedderError(f"{path}: cannot be read ({error.strerror}); check the path") from error


def check_sha256(path: Path, expected: str, mend: str) -> None:
    _expect(path, sha256(path), frozenset({expected}), mend)


def checked_bytes(path: Path, expected: frozenset[str], mend: str) -> bytes:
    """Read a file that must have a known SHA-256."""
    with _reading(path):
        data = path.read_bytes()
    _expect(path, hashlib.sha256(data).hexdigest(), expected, mend)
    return data


def _expect(path: Path, digest: str, expected: frozenset[str], mend: str) -> None:
    if digest not in expected:
        raise EmbedderError(f"{path}: not the file that kbkit knows (SHA-256 {digest}); {mend}")


def quieten_forks() -> None:
    """Silence the warning of tokenizers at forks, as after each shell command in a notebook."""
    if _fork_hooks or not hasattr(os, "register_at_fork"):
        return
    _fork_hooks.append(True)
    ours: list[bool] = []

    def before() -> None:
        if "TOKENIZERS_PARALLELISM" not in os.environ:
            os.environ["TOKENIZERS_PARALLELISM"] = "false"
            ours.append(True)

    def in_parent() -> None:
        if ours:
            ours.clear()
            os.environ.pop("TOKENIZERS_PARALLELISM", None)

    os.register_at_fork(before=before, after_in_parent=in_parent)


_fork_hooks: list[bool] = []
