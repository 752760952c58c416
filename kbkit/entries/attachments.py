"""What of an entry readers of a site can have: all of it but what people think of it."""

from __future__ import annotations

from contextlib import suppress

from kbkit.entries.entries import Entries
from kbkit.entries.store import PROMPT, README
from kbkit.errors import FilesError


def attachments(entries: Entries, slug: str) -> dict[str, bytes]:
    """The files of an entry by their paths within it; none where it is gone or cannot be read.

    Votes, and whatever else stands in ``skill.yaml``, stay at home.
    """
    files: dict[str, bytes] = {}
    with suppress(FilesError):
        entry = entries.read(slug)
        texts = {PROMPT: entry.prompt, README: entry.readme}
        files = {path: text.encode() for path, text in texts.items() if text}
        for file in entry.files:
            with entries.open(slug, file.path) as data:
                files[file.path] = data.read()
    return files
