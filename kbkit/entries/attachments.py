"""Files of an entry for readers of a site: an Agent Skill without votes."""

from __future__ import annotations

from contextlib import suppress

from kbkit.entries.agent_skills import skill_files
from kbkit.entries.documents import title_of
from kbkit.entries.entries import Entries
from kbkit.errors import FilesError


def attachments(entries: Entries, slug: str) -> dict[str, bytes]:
    """Return the files of an entry as a skill, by path; empty if unreadable."""
    with suppress(FilesError):
        stored = entries._store.read_entry(slug)
        return skill_files(stored, title_of(stored))
    return {}
