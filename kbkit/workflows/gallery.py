"""The gallery: recipes for known sites and all kinds of sources."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kbkit.errors import ConflictError, NotFoundError
from kbkit.models.values import Value, did_you_mean
from kbkit.recipes import Recipe, golden_questions, load_recipe

_PACKAGED = Path(__file__).with_name("gallery")
_REPOSITORY = Path(__file__).parents[2] / "recipes"
_NOT_LISTED = frozenset({"notebook", "quickstart"})  # they read kbkit's own repository
_FIGURES = "figures.json"


@dataclass(frozen=True, slots=True)
class GalleryRecipe(Value):
    """A recipe of the gallery.

    Attributes:
        about: Scope and exclusions, in a sentence or two.
        license: License of the documents, as far as known.
        figures: Cost and quality of a run; empty without a run.
    """

    name: str
    about: str
    sources: tuple[str, ...]
    address: str
    license: str
    questions: int
    path: Path
    figures: Mapping[str, Any] = field(default_factory=dict)


def list_recipes() -> list[GalleryRecipe]:
    """List the recipes of the gallery, sorted by name."""
    folder = _folder()
    figures: dict[str, Any] = {}
    if (folder / _FIGURES).is_file():
        figures = json.loads((folder / _FIGURES).read_text(encoding="utf-8"))["recipes"]
    recipes = []
    for path in sorted(folder.glob("*.yaml")):
        if path.stem not in _NOT_LISTED:
            recipe = load_recipe(path)
            recipes.append(
                GalleryRecipe(
                    path.stem,
                    notes(path),
                    tuple(dict.fromkeys(source.type for source in recipe.sources)),
                    _address(recipe),
                    recipe.license,
                    len(golden_questions(recipe)),
                    path,
                    figures.get(path.stem, {}),
                )
            )
    return recipes


def copy_recipe(name: str, folder: str | Path = ".", *, force: bool = False) -> list[Path]:
    paths = {recipe.name: recipe.path for recipe in list_recipes()}
    if name not in paths:
        hint = did_you_mean(name, paths, "`kbkit recipes list` shows them")
        raise NotFoundError(f"{name}: no such recipe in the gallery; {hint}")
    source, target = paths[name], Path(folder)
    material = sorted(path for path in source.with_suffix("").rglob("*") if path.is_file())
    pairs = [(path, target / path.relative_to(source.parent)) for path in (source, *material)]
    existing = [copy for _, copy in pairs if copy.exists()]
    if existing and not force:
        raise ConflictError(f"{existing[0]}: exists; name another folder, or add --force")
    for original, copy in pairs:
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(original, copy)
    return [copy for _, copy in pairs]


def notes(path: Path) -> str:
    lines = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            break
        lines.append(line.lstrip("# ").rstrip())
    return " ".join(lines)


def _folder() -> Path:
    return _PACKAGED if _PACKAGED.is_dir() else _REPOSITORY


def _address(recipe: Recipe) -> str:
    source = recipe.sources[0]
    return next(
        (str(value) for key in ("url", "path", "name") if (value := getattr(source, key, None))), ""
    )
