"""Draft a recipe from a site, a folder, a package or an API description."""

from __future__ import annotations

import os
import re
from collections import Counter
from importlib.metadata import PackageNotFoundError, metadata, packages_distributions
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from kbkit.errors import SourceError
from kbkit.models import License
from kbkit.models.values import plain
from kbkit.runtime.progress import OnProgress
from kbkit.sources.files import walk
from kbkit.sources.formats import FORMATS
from kbkit.sources.html import parse
from kbkit.sources.openapi import is_openapi
from kbkit.sources.untrusted import load_values
from kbkit.workflows.drafts.draft import (
    Draft,
    Exclusion,
    check_free,
    draft_of_description,
    slug,
    write_draft,
)
from kbkit.workflows.drafts.sites import draft_of_site, generator_of, known_exclusions, title_of

__all__ = ["Draft", "Exclusion", "check_free", "draft_recipe", "write_draft"]


_PACKAGE = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_EXCLUDED = {
    "build output": ("build", "_build", "dist"),
    "a built site": ("site",),
    "drafts": ("drafts", "_drafts"),
    "old versions": ("archive", "old"),
    "templates": ("templates", "_templates"),
    "parts of pages": ("includes", "_includes"),
}
_DESCRIPTIONS = (".yaml", ".yml", ".json")
_MAX_BYTES = 20_000_000
_MAX_FILES = 50_000
_LICENSE = 60  # maximum characters of a license's name; some packages state the whole text


def draft_recipe(
    place: str,
    *,
    base: str | Path = ".",
    allow_private: bool = False,
    on_progress: OnProgress | None = None,
) -> Draft:
    if "://" in place:
        return draft_of_site(place, allow_private=allow_private, on_progress=on_progress)
    path = Path(place).expanduser()
    if path.is_dir():
        return _folder(path, Path(base))
    if path.is_file():
        return _file(path, Path(base))
    if _PACKAGE.fullmatch(place) and is_package(place):
        return _package(place)
    hint = f"; for a site write https://{place}" if "." in place and "/" not in place[:1] else ""
    raise SourceError(
        f"{place}: no web address, no file or folder, and no installed Python package{hint}"
    )


def is_package(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except (ImportError, ValueError, AttributeError):
        return False


def _package(name: str) -> Draft:
    about: Any = {}
    for distribution in packages_distributions().get(name.partition(".")[0], []):
        try:
            about = metadata(distribution)
            break
        except PackageNotFoundError:
            continue
    version = about.get("Version") or "?"
    named = plain((about.get("License-Expression") or about.get("License") or "").strip())
    stated = License.stated(named) if len(named) <= _LICENSE else License()
    return Draft(
        name=slug(name),
        description=plain(about.get("Summary") or f"The Python API of {name}"),
        source={"type": "package", "name": name},
        seen=(
            f"The API of the Python package {name} {version}, read from its docstrings.",
            "Add `introspect: true` for what exists only after an import (which runs its code).",
        ),
        license=stated.name,
        title=name,
    )


def _file(path: Path, base: Path) -> Draft:
    if path.suffix.lower() in _DESCRIPTIONS and path.stat().st_size <= _MAX_BYTES:
        values = load_values(path.read_text(encoding="utf-8", errors="replace"))
        if is_openapi(values) or (isinstance(values, dict) and "swagger" in values):
            return draft_of_description(values, {"path": _inside(path, base)}, str(path))
    if path.suffix.lower() in (".warc", ".zip", ".tar", ".tgz", ".gz", ".docset"):
        raise SourceError(f"{path}: an archive; write a source of type mirror, with its base_url")
    if path.suffix.lower() not in FORMATS:
        raise SourceError(
            f"{path}: no format that kbkit reads; it reads {', '.join(sorted(FORMATS))}"
        )
    return Draft(
        name=slug(path.stem),
        description="",
        source={"type": "files", "path": _inside(path, base)},
        seen=(f"One file, {path.stat().st_size / 1e6:.1f} MB.",),
        title=path.stem,
    )


def _folder(path: Path, base: Path) -> Draft:
    kinds, folders, pages = Counter[str](), Counter[str](), 0
    page = None
    for number, (file, inside) in enumerate(walk(path)):
        if number >= _MAX_FILES:
            break
        suffix = file.suffix.lower()
        if suffix in (".html", ".htm"):
            pages += 1
            page = page or file
        if suffix in FORMATS and not file.name.startswith("."):
            kinds[suffix] += 1
            for part in Path(inside).parts[:-1]:
                folders[part] += 1
    if not kinds:
        raise SourceError(f"{path}: nothing in it that kbkit reads")
    counts = ", ".join(f"{number:,} {suffix}" for suffix, number in kinds.most_common(6))
    name = path.resolve().name
    inside = _inside(path, base)
    if (path / "index.html").is_file() and pages * 2 > sum(kinds.values()):
        return _mirror(path, inside, counts)
    excluded = [
        Exclusion(f"**/{folder}/**", reason, folders[folder])
        for reason, names in _EXCLUDED.items()
        for folder in names
        if folders[folder]
    ]
    return Draft(
        name=slug(name),
        description="",
        source={"type": "files", "path": inside},
        seen=(f"Files: {counts}.", "Name a glob such as docs/**/*.md to read some of them only."),
        excluded=tuple(excluded),
        title=name,
    )


def _mirror(path: Path, inside: str, counts: str) -> Draft:
    html = (path / "index.html").read_text(encoding="utf-8", errors="replace")
    root = parse(html) if html.strip() else None
    links = [] if root is None else list(root.iter("link"))
    named = [link.get("href") or "" for link in links if link.get("rel") == "canonical"]
    address = next((url for url in named if url.startswith("http")), "")
    generator = generator_of(root, html) if root is not None else ""
    title = title_of(root) if root is not None else ""
    seen = [f"A built site{f', made by {generator}' if generator else ''}: {counts}."]
    if not address:
        seen.append(
            "Its pages do not say where they are published: change base_url to that address."
        )
    return Draft(
        name=slug(title or path.resolve().name),
        description="",
        source={
            "type": "mirror",
            "path": inside,
            "base_url": address or "https://example.org/docs/",
        },
        seen=tuple(seen),
        excluded=tuple(known_exclusions(generator, "/")),
        title=title,
    )


def _inside(path: Path, base: Path) -> str:
    try:
        return Path(os.path.relpath(path.resolve(), base.resolve())).as_posix()
    except ValueError:  # another drive
        return path.resolve().as_posix()
