"""What the navigation of a MkDocs project calls its pages."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import yaml

_CONFIGS = ("mkdocs.yml", "mkdocs.yaml", "zensical.yml")
_LARGEST = 500_000  # bytes of a configuration
_MOST = 20_000  # pages


class _Loader(yaml.SafeLoader):
    """Reads values only; what a configuration has Python or the environment say is left out."""


_Loader.add_multi_constructor("", lambda _loader, _suffix, _node: None)


def nav_titles(folder: Path) -> dict[Path, str]:
    """The titles that a project gives its pages, by their files.

    Args:
        folder: The project's, or its folder of documents.
    """
    for place in (folder, folder.parent):
        for name in _CONFIGS:
            try:
                if (place / name).stat().st_size > _LARGEST:
                    continue
                loaded = yaml.load((place / name).read_bytes(), _Loader)  # noqa: S506 - values only
            except (OSError, yaml.YAMLError, ValueError, RecursionError):
                continue
            if isinstance(loaded, dict):
                docs = place / str(loaded.get("docs_dir") or "docs")
                found = islice(_entries(loaded.get("nav"), 0), _MOST)
                return {(docs / path).resolve(): title for path, title in found}
    return {}


def _entries(nav: Any, depth: int) -> Iterator[tuple[str, str]]:
    for item in nav if isinstance(nav, list) and depth < 20 else ():
        for title, inside in item.items() if isinstance(item, dict) else ():
            if isinstance(inside, str):
                yield inside, str(title)
            else:
                yield from _entries(inside, depth + 1)
