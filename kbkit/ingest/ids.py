"""Ids of documents, and hashes of text: the same wherever and whenever they are made."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence


def document_id(kb_id: str, uri: str) -> str:
    """The id of a document that is stored for the first time under a URI."""
    return digest(f"{kb_id}\0{uri}")


def chunk_id(document_id: str, heading_path: Sequence[str], text: str, occurrence: int) -> str:
    """The id of a chunk; ``occurrence`` counts those before it that are alike, from 0."""
    return digest(json.dumps([document_id, heading_path, text, occurrence]))


def digest(text: str) -> str:
    """A hash of text, 32 hexadecimal digits."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
