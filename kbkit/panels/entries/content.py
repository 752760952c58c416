"""Entries and their form as JSON values for the page."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from kbkit.errors import ConfigError
from kbkit.models import Entry, EntryFile, EntryInfo
from kbkit.panels.questions import text_in
from kbkit.panels.render import ABOUT_LENGTH, PATH_LENGTH, TITLE_LENGTH, plain
from kbkit.panels.text_rendering import render_file

_TEXTS = ("title", "description", "category", "status", "prompt", "readme")


def table_row(info: EntryInfo) -> dict[str, Any]:
    return {
        "slug": info.slug,
        "title": plain(info.title, TITLE_LENGTH) or info.slug,
        "description": plain(info.description, ABOUT_LENGTH),
        "status": info.status.value,
        "category": plain(info.category, TITLE_LENGTH),
        "tags": [plain(tag, 40) for tag in info.tags[:8]],
        "average": info.rating.average,
        "count": info.rating.count,
        "updated": _day(info.updated_at),
        "problem": plain(info.problem, ABOUT_LENGTH),
    }


def details(entry: Entry, rater: str) -> dict[str, Any]:
    """Return all that is shown of an entry, except for its code."""
    own = [vote.score for vote in entry.rating.votes if vote.rater == rater]
    origin = f"learned from task {entry.origin_task_id}" if entry.origin_task_id else ""
    facts = [
        entry.slug,
        f"changed {_time(entry.updated_at)}",
        "by an agent" if entry.source.value == "auto" else "by hand",
        origin,
    ]
    return {
        **table_row(entry),
        "version": entry.version,
        "stars": own[-1] if own else 0,
        "facts": [plain(fact, PATH_LENGTH) for fact in facts if fact],
        "prompt_html": render_file("prompt.md", entry.prompt, []).html,
        "readme_html": render_file("README.md", entry.readme, []).html,
        "code": [_file(file) for file in entry.code],
        "artifacts": [_file(file) for file in entry.files if file not in entry.code],
        "votes": [
            {"when": _time(vote.timestamp), "rater": plain(vote.rater, 80), "score": vote.score}
            for vote in reversed(entry.rating.votes)
        ],
        "history": [
            f"Made {_time(entry.created_at)}",
            f"Changed {_time(entry.updated_at)}, version {entry.version}",
        ],
        "fields": fields(entry),
    }


def fields(entry: Entry) -> dict[str, str]:
    said = {name: str(getattr(entry, name)) for name in _TEXTS}
    return {**said, "tags": ", ".join(entry.tags), "version": entry.version}


def values_of(message: Mapping[str, Any], *, new: bool) -> dict[str, Any]:
    said: dict[str, Any] = {name: text_in(message, name) for name in _TEXTS}
    if not said["title"].strip():
        raise ConfigError("title: is empty; describe the entry in one line")
    said["tags"] = [tag for tag in map(str.strip, text_in(message, "tags").split(",")) if tag]
    if new:
        said["slug"] = text_in(message, "slug").strip()
    return said


def _file(file: EntryFile) -> dict[str, Any]:
    return {"path": file.path, "size": file.size, "shown": _size(file.size)}


def _size(size: int) -> str:
    if size < 1_000:
        return f"{size} bytes"
    return f"{size / 1_000:,.1f} kB" if size < 1_000_000 else f"{size / 1_000_000:,.1f} MB"


def _day(at: datetime) -> str:
    return f"{at.astimezone():%Y-%m-%d}"


def _time(at: datetime) -> str:
    return f"{at.astimezone():%Y-%m-%d %H:%M}"
