"""Checks of what somebody says of an entry; an error begins with the name of what is wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kbkit.entries.skill_file import LONGEST_DESCRIPTION, LONGEST_TITLE, MOST_TAGS, NAME
from kbkit.entries.store import PROMPT, README
from kbkit.errors import ConfigError, InvalidPathError
from kbkit.files.paths import joined, parts_of
from kbkit.models import EntryStatus
from kbkit.validation import check_text

_OWN = frozenset({NAME, PROMPT.casefold(), README.casefold()})
"""Files that have an argument of their own."""


def checked(**said: Any) -> dict[str, Any]:
    """What somebody says of an entry, each in one form.

    Raises:
        ConfigError: Something is wrong; the message begins with its name.
    """
    found = {key: value if key in ("tags", "status") else check_text(key, value)
             for key, value in said.items()}  # fmt: skip
    for key, most in (("title", LONGEST_TITLE), ("category", LONGEST_TITLE)):
        if key in found:
            found[key] = " ".join(found[key].split())
            if len(found[key]) > most:
                raise ConfigError(f"{key}: has more than {most} characters; say it shorter")
    if found.get("title") == "":
        raise ConfigError("title: is empty; say in a line what the entry does")
    if len(found.get("description", "")) > LONGEST_DESCRIPTION:
        raise ConfigError(f"description: has more than {LONGEST_DESCRIPTION:,} characters; say "
                          "more in the prompt or the readme")  # fmt: skip
    if "description" in found:
        found["description"] = found["description"].strip()
    if "tags" in found:
        found["tags"] = _tags(found["tags"])
    if "status" in found:
        found["status"] = checked_status(found["status"]).value
    return found


def _tags(tags: Any) -> tuple[str, ...]:
    if isinstance(tags, str) or not isinstance(tags, Sequence):
        raise ConfigError(f"tags={tags!r}: give a list of words, such as ['logs', 'python']")
    said = (" ".join(check_text("tags", each).split()).removeprefix("#") for each in tags)
    found = tuple(dict.fromkeys(each[:LONGEST_TITLE] for each in said if each))
    if len(found) > MOST_TAGS:
        raise ConfigError(f"tags: more than {MOST_TAGS}")
    return found


def checked_status(status: str | EntryStatus) -> EntryStatus:
    """A status by its name.

    Raises:
        ConfigError: There is none of that name.
    """
    try:
        return EntryStatus(status)
    except ValueError:
        raise ConfigError(f"status={status!r}: choose from {', '.join(EntryStatus)}") from None


def checked_files(files: Mapping[str, str | bytes | None]) -> dict[str, bytes | None]:
    """Files as they are written, by path in one form.

    Raises:
        InvalidPathError: A path may not be one, or is that of a file with an argument of its own.
        ConfigError: A file is neither text nor bytes.
    """
    found: dict[str, bytes | None] = {}
    for path, content in files.items():
        parts = parts_of(path)
        if len(parts) == 0 or (len(parts) == 1 and parts[0].casefold() in _OWN):
            raise InvalidPathError(f"{path}: name a file such as 'code/run.py'; the prompt, the "
                                   "readme and what skill.yaml says have arguments of their own"
                                   )  # fmt: skip
        if content is not None and not isinstance(content, str | bytes):
            raise ConfigError(f"files: {path}: give text or bytes")
        found[joined(parts)] = check_text(path, content).encode() if isinstance(
            content, str) else content  # fmt: skip
    return found
