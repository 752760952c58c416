"""A section on files for an agent's system prompt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kbkit.models.plain import pluralize

MAX = 30
"""Maximum folders and knowledge bases listed."""


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
            for name, count in list(folders.items())[:MAX]
        ),
    ]
    if not folders:
        lines.append("- none yet")
    elif len(folders) > MAX:
        lines.append(f"- and {len(folders) - MAX} more")
    if knowledge_bases:
        names = ", ".join(f"`kb/{name}/`" for name in knowledge_bases[:MAX])
        more = len(knowledge_bases) - MAX
        rest = f" and {more} more" if more > 0 else ""
        lines.append(f"- `kb/` (read-only: documentation, one Markdown file a page): {names}{rest}")
    lines += [
        "",
        "The tool `memory` shows, makes and changes them; there, paths begin with `/memories` "
        "(`/memories/notes/today.md` is `notes/today.md`):",
        "",
        "- `view` lists a folder, or shows a file with numbered lines (`view_range` for a part).",
        "- `create` makes a new file; `str_replace` changes a text that occurs exactly once in a "
        "file; `insert` adds text after a line.",
        "- `rename` moves and `delete` removes a file or folder; a person can bring it back.",
        "",
        "Read the existing notes before you begin. Write down what you would need if you were "
        "interrupted now, in Markdown, in the file where you would look for it; prefer changing a "
        "file to making another. Link notes as `[[Name of the note]]`, and mark them with "
        "`#tags`: both are searched.",
    ]
    return "\n".join(lines)
