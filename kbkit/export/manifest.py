"""The manifest of an export: its files, and their structure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from kbkit.errors import ExportError
from kbkit.models.values import from_dict

ASSET_FILES = Path(__file__).parent / "assets"


def asset(name: str) -> str:
    return (ASSET_FILES / name).read_text("utf-8")


def write_file(path: Path, data: bytes) -> None:
    """Replace a file atomically."""
    draft = path.with_name(f".{path.name[:40]}.part")
    try:
        draft.write_bytes(data)
    except FileNotFoundError:  # the folder is new
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.write_bytes(data)
    draft.replace(path)


@contextmanager
def writing(folder: Path, content: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ExportError(
            f"{folder}: cannot write {content} ({error.strerror or error}); "
            "free the place or choose another folder"
        ) from error


MANIFEST = ".kbkit-export.json"
"""Name of the manifest; MkDocs ignores names with a leading dot."""

_FORMAT = 1
_MAX_TOP = 20
_BROWSE = "browse.md"  # the first of the pages about all documents


@dataclass(frozen=True, slots=True)
class Manifest:
    """Files that an export wrote, as relative paths with ``/``.

    Attributes:
        nav: Navigation with all documents; see `kbkit.export.pages.home_page`.
        history: Revision of each document, by URI; see `kbkit.export.pages.outline`.
    """

    kb: str
    title: str
    documents: Mapping[str, str] = field(default_factory=dict)
    files: tuple[str, ...] = ()
    nav: tuple[dict[str, Any], ...] = ()
    history: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, directory: Path) -> Manifest:
        """Read the manifest of a folder; an empty one if there is none."""
        path = directory / MANIFEST
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
            if values.pop("format") != _FORMAT:
                raise ExportError(
                    f"{path}: written by another version of kbkit; "
                    "export into a new folder, or upgrade kbkit"
                )
            manifest = from_dict(cls, values)
        except FileNotFoundError:
            return cls("", "")
        except (OSError, ValueError, LookupError, AttributeError, TypeError) as error:
            raise ExportError(
                f"{path}: damaged ({error}); remove the folder and export again"
            ) from error
        for page in (*manifest.files, *manifest.documents.values()):
            if page.startswith("/") or "\\" in page or ".." in page.split("/"):
                raise ExportError(f"{path}: names {page!r}, which is outside the folder")
        return manifest

    def write(self, directory: Path) -> None:
        """Write the manifest into a folder atomically, if it changed."""
        values = {"format": _FORMAT} | {
            each.name: getattr(self, each.name) for each in fields(self)
        }
        parts = ",\n".join(f'"{name}":{_lines(value)}' for name, value in values.items())
        data = f"{{\n{parts}\n}}\n".encode("utf-8", "replace")
        # `mkdocs serve` builds again when a file is touched
        if not ((directory / MANIFEST).is_file() and (directory / MANIFEST).read_bytes() == data):
            write_file(directory / MANIFEST, data)

    def sections(self) -> dict[str, str]:
        """Return the titles of the sections above each page, by its path."""
        sections: dict[str, str] = {}
        waiting = [("", item) for item in self.nav]
        while waiting:
            above, item = waiting.pop()
            sections.setdefault(item["path"], above)
            here = f"{above} › {item['title']}" if above else item["title"]
            waiting += [(here, inner) for inner in item.get("children", ())]
        return sections

    def top(self) -> list[dict[str, Any]]:
        """Return the pages for a theme's navigation, few since it is in every page."""
        paths = [item["path"] for item in self.nav]
        browse = paths.index(_BROWSE) if _BROWSE in paths else len(paths)
        first, last = self.nav[:_MAX_TOP], self.nav[browse:]
        return [*first, *(item for item in last if item not in first)]


def _lines(value: Any) -> str:
    """Return a value as JSON with one entry per line, for version control."""
    if isinstance(value, Mapping):
        return _framed("{}", (f"{_json(key)}: {_json(one)}" for key, one in value.items()))
    return _framed("[]", map(_json, value)) if isinstance(value, tuple) else _json(value)


def _framed(brackets: str, lines: Iterable[str]) -> str:
    inside = ",\n".join(lines)
    return f"{brackets[0]}\n{inside}\n{brackets[1]}" if inside else brackets


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
