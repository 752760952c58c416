"""When two queries are the same one, and what it is called in files."""

from __future__ import annotations

import hashlib


def fold_query(query: str) -> str:
    """A query as it is compared with others: case and white space do not count."""
    return " ".join(query.casefold().split())


def query_id(query: str) -> str:
    """A name for a query that files can hold: ``q`` and 12 hexadecimal digits."""
    digest = hashlib.sha256(fold_query(query).encode("utf-8", "replace")).hexdigest()
    return f"q{digest[:12]}"
