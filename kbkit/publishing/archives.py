"""Files of documents as archives that readers of a site can have."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Mapping
from functools import partial
from io import BytesIO

from kbkit.export.facts import Download
from kbkit.export.pages.paths import safe_name

FOLDER = "downloads"
"""Folder of the archives in an export."""

Attachments = Callable[[str], Mapping[str, bytes]]
"""Gives the files of a document by their paths within it, by the document's URI."""

_LONG_AGO = (1980, 1, 1, 0, 0, 0)
"""The earliest that an archive can say: what did not change makes the same archive."""


def downloads(documents: Mapping[str, str], attachments: Attachments) -> dict[str, Download]:
    """The archive of each document that has files.

    Args:
        documents: URI of each document, by its id.
        attachments: Gives the files of each.
    """
    found = {}
    for known, uri in documents.items():
        if files := attachments(uri):
            sizes = tuple((path, len(data)) for path, data in sorted(files.items()))
            name = safe_name(uri)
            found[known] = Download(
                f"{FOLDER}/{name}.zip",
                sizes,
                partial(_archive, name, attachments, uri),
                "an Agent Skill as ZIP" if "SKILL.md" in files else "ZIP",
            )
    return found


def _archive(name: str, attachments: Attachments, uri: str) -> bytes:
    """All files of a document, in a folder of their own."""
    target = BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for path, data in sorted(attachments(uri).items()):
            info = zipfile.ZipInfo(f"{name}/{path}", _LONG_AGO)
            archive.writestr(info, data, zipfile.ZIP_DEFLATED)
    return target.getvalue()
