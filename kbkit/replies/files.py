"""Files and folders for an agent."""

from __future__ import annotations

from collections.abc import Iterable

from kbkit.models import FileInfo
from kbkit.replies.listings import listing
from kbkit.replies.quotes import Quotes, part_reply
from kbkit.replies.reply import Budget, Reply
from kbkit.retrieval.quoting import one_line


def folder_reply(found: Iterable[FileInfo], *, path: str, start: int, budget: Budget) -> Reply:
    """What a folder holds, a line each.

    Args:
        found: What lies there.
        path: The folder.
        start: How many were told before.
        budget: What the reply may take.
    """
    rows = (
        (
            f"{one_line(info.path)}/" if info.is_folder
            else f"{one_line(info.path)} ({info.size:,} bytes, {info.changed_at:%Y-%m-%d})",
            {
                "path": info.path, "kind": info.kind.value, "size": info.size,
                "changed_at": f"{info.changed_at:%Y-%m-%d}",
            },
        )
        for info in found
    )  # fmt: skip
    quotes, name = Quotes(), one_line(path)[:200] or "the root"
    return listing(
        rows, name="files", head=f"In {name}: {quotes.note}\n<{quotes.mark}>",
        foot=f"</{quotes.mark}>", nothing=f"Nothing lies in {name}.", start=start, budget=budget,
        more={"note": quotes.note},
    )  # fmt: skip


def file_reply(info: FileInfo, content: str, *, start: int, budget: Budget) -> Reply:
    """The text of a file, from a character on.

    Args:
        info: The file.
        content: Its text.
        start: How many characters were told before.
        budget: What the reply may take.
    """
    return part_reply(
        content, name=one_line(info.path)[:200], said=f"version: {info.version}",
        values={"path": info.path[:200], "version": info.version}, start=start, budget=budget,
    )  # fmt: skip
