"""Parts of files, and errors and limits of all formats."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from kbkit.models import DocumentType

MAX_BYTES = 50_000_000  # of a file
MAX_CHARACTERS = 40_000_000  # of Markdown from one file
GROUP = 900  # characters of a table or list below one heading: the default chunk size
PAGE_BREAK = "\n\n\f\n\n"  # separates pages, even empty ones


class UnreadableError(Exception):
    """The file gives no document; the message is a one-line reason."""


@dataclass(frozen=True, slots=True)
class Part:
    """A document inside a file.

    Attributes:
        name: Name among the parts; ``""`` for the whole file.
        note: Note on how it was read, or ``""``.
        template: Document type by its generator, if known.
    """

    title: str
    content: str
    name: str = ""
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""
    template: DocumentType | None = None


def untrusted_xml(data: bytes, *, recover: bool) -> Any:
    """Parse XML without entities, comments and outside access; ``None`` without a root."""
    from lxml import etree

    parser = etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        recover=recover,
        remove_comments=True,
        remove_pis=True,
    )
    return etree.fromstring(data, parser)


def stem(name: str) -> str:
    return PurePosixPath(name.replace("\\", "/")).stem


def one_line(text: object) -> str:
    return " ".join(str(text or "").split())[:500]
