"""A section on files for an agent's system prompt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kbkit.models.plain import pluralize

MOST = 30
"""Folders, and knowledge bases, that are named."""


def prompt(folders: Mapping[str, int], knowledge_bases: Sequence[str]) -> str:
    """A section of a system prompt."""
    lines = [
        "## Files",
        "",
        "You have files that last from one conversation to the next. People read and write them "
        "too. Folders at the root:",
        "",
        *(
            f"- `{name}/` ({pluralize(count, 'file')})"
            for name, count in list(folders.items())[:MOST]
        ),
    ]
    if not folders:
        lines.append("- none yet")
    elif len(folders) > MOST:
        lines.append(f"- and {len(folders) - MOST} more")
    if knowledge_bases:
        names = ", ".join(f"`kb/{name}/`" for name in knowledge_bases[:MOST])
        more = len(knowledge_bases) - MOST
        rest = f" and {more} more" if more > 0 else ""
        lines.append(f"- `kb/` (read-only: documentation, one Markdown file a page): {names}{rest}")
    lines += [
        "",
        "The tool `memory` shows, makes and changes them; there, paths begin with `/memories` "
        "(`/memories/notes/today.md` is `notes/today.md`):",
        "",
        "- `view` lists a folder, or shows a file with numbered lines (`view_range` for a part).",
        "- `create` makes a file that is not there yet; `str_replace` changes a text that stands "
        "in a file exactly once; `insert` puts text behind a line.",
        "- `rename` moves and `delete` removes a file or folder; a person can bring it back.",
        "",
        "Look at what is there before you begin. Write down what you would need to go on if you "
        "were interrupted now, in Markdown, in the file where you would look for it; change a file "
        "rather than making another. Link notes as `[[Name of the note]]`, and mark them with "
        "`#tags`: both are searched.",
    ]
    return "\n".join(lines)
