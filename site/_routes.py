"""Generate the list of a server's routes from its OpenAPI document."""

from __future__ import annotations

import tempfile
from itertools import groupby
from pathlib import Path
from typing import Any

import kbkit
from kbkit.server.app import application


def routes() -> str:
    """Return each route with its description, and its scope unless it is the usual one."""
    with tempfile.TemporaryDirectory() as folder, kbkit.open(Path(folder) / "kb") as workspace:
        document = application(workspace).openapi()
    found = [
        (operation["tags"][0], method.upper(), path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    parts = []
    for tag, group in groupby(sorted(found, key=lambda each: each[0]), key=lambda each: each[0]):
        rows = [_row(method, path, operation) for _, method, path, operation in group]
        parts.append("\n".join([f"### {tag.capitalize()}", "", *rows]))
    return "\n\n".join(parts) + "\n"


def _row(method: str, path: str, operation: dict[str, Any]) -> str:
    scopes = [
        name for each in operation.get("security", ()) for names in each.values() for name in names
    ]
    scope = ", ".join(scopes) or "no token"
    usual = "read" if method == "GET" else "write"
    note = "" if scope == usual else f" *({scope})*"
    about = " ".join(operation.get("description", "").partition("\n\n")[0].split())
    return f"- `{method} {path}`{note}: {about.replace('<', '&lt;')}"
