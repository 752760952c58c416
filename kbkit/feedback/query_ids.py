"""What a query is called in files."""

from __future__ import annotations

import hashlib

from kbkit.models.scores import fold_query


def query_id(query: str) -> str:
    """A name for a query that files can hold: ``q`` and 12 hexadecimal digits."""
    digest = hashlib.sha256(fold_query(query).encode("utf-8", "replace")).hexdigest()
    return f"q{digest[:12]}"
