"""An entry -> the document that is searched."""

from __future__ import annotations

import posixpath

from kbkit.entries.store import PROMPT, README, StoredEntry
from kbkit.models import SourceDocument

_LONGEST_TEXT = 500_000
"""Characters of a prompt or a readme."""
_LONGEST_CODE = 50_000
"""Characters of all code."""


def document_of(stored: StoredEntry) -> SourceDocument:
    """What is searched of an entry: what it is good for, its prompt, its readme, its code."""
    skill = stored.skill
    title = title_of(stored)
    texts = [text_of(stored, name)[:_LONGEST_TEXT].strip() for name in (PROMPT, README)]
    parts = [f"# {title}", skill.description, *texts, *_code(stored)]
    metadata = {
        "description": skill.description[:300],
        "category": skill.category,
        "status": skill.status.value,
        "source": skill.source.value,
        "entry": stored.slug,
    }
    return SourceDocument(
        stored.slug,
        title,
        "\n\n".join(filter(None, parts)),
        tags=skill.tags,
        metadata={key: value for key, value in metadata.items() if value},
    )


def title_of(stored: StoredEntry) -> str:
    """What an entry is called: as it says, else as its folder."""
    return stored.skill.title or stored.slug.replace("-", " ").capitalize()


def text_of(stored: StoredEntry, path: str) -> str:
    """The text of a file, ``""`` where there is none; what is no UTF-8 stands as a mark."""
    return stored.files.get(path, b"").decode("utf-8-sig", "replace").replace("\r\n", "\n")


def _code(stored: StoredEntry) -> list[str]:
    """Code as listings, below what their files are called."""
    parts, room = list[str](), _LONGEST_CODE
    for path in sorted(stored.files):
        if not path.startswith("code/") or room <= 0 or b"\0" in stored.files[path][:8_000]:
            continue
        text = text_of(stored, path)[:room]
        room -= len(text)
        fence = "````"
        while fence in text:
            fence += "`"
        language = posixpath.splitext(path)[1][1:]
        parts.append(f"## {path}\n\n{fence}{language}\n{text.rstrip()}\n{fence}")
    return parts
