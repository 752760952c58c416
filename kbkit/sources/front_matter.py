"""Parse the front matter of Markdown and plain text."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

import yaml

from kbkit.markdown.structure import document_title
from kbkit.sources.markdown import commonmark

_FRONT = re.compile(r"\A---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_MAX_FRONT = 20_000


@dataclass(frozen=True, slots=True)
class TextFile:
    """A text file and its front matter.

    Attributes:
        title: From the front matter, the first heading, or the name.
        metadata: The rest of the front matter, as JSON values.
    """

    title: str
    content: str
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)


def read_text(text: str, name: str, *, markdown: bool = False) -> TextFile:
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\x00", "").lstrip("\ufeff")
    front: dict[str, Any] = {}
    if match := _FRONT.match(text):
        loaded = _front_matter(match.group(1))
        if loaded is not None:
            front = loaded
            text = text[match.end() :]
    if markdown:
        text = commonmark(text, components=name.lower().endswith(".mdx"))
    content = text.strip("\n")
    title = front.pop("title", None)
    title = str(title).strip() if isinstance(title, (str, int, float)) else ""
    tags = front.pop("tags", None) or ()
    if isinstance(tags, str):
        tags = [tag.strip() for tag in tags.split(",")]
    labels = tuple(str(tag) for tag in tags if tag) if isinstance(tags, (list, tuple)) else ()
    return TextFile(
        title=" ".join((title or document_title(content) or title_from_name(name)).split())[:500],
        content=content + "\n" if content.strip() else "",
        tags=labels,
        metadata={str(key): json_value(value) for key, value in front.items()},
    )


def title_from_name(name: str) -> str:
    """Make a title from a path or URL; index pages take their folder's name."""
    path = PurePosixPath(name.rstrip("/").replace("\\", "/"))
    own = path.stem.lower() in {"index", "readme"} and path.parent.name
    stem = path.parent.name if own else path.stem
    return re.sub(r"[-_]+", " ", stem).strip() or name


def _front_matter(text: str) -> dict[str, Any] | None:
    # aliases can make a small text expand without end
    if len(text) > _MAX_FRONT or re.search(r"(?m)(?:^|[\s:\[,-])[&*]\w", text):
        return None
    try:
        loaded = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):
        return None
    return loaded if isinstance(loaded, dict) else None


def json_value(value: Any) -> Any:
    """Convert any value to JSON; types that JSON lacks become text."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, dict):
        return {str(key): json_value(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [json_value(inner) for inner in value]
    return str(value)
