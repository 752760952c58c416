"""The page ``/docs``: the OpenAPI document for a person, without scripts and without a network."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any

_STYLE = """
:root{color-scheme:light dark;--line:#8884}
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:0 auto;padding:1rem;
overflow-wrap:anywhere}
h1{margin-bottom:0}h2{margin-top:2rem;border-bottom:1px solid var(--line)}
details{border:1px solid var(--line);border-radius:.4rem;margin:.4rem 0;padding:.3rem .7rem}
summary{cursor:pointer}code,pre{font-family:ui-monospace,monospace;font-size:.9em}
pre{overflow:auto;border:1px solid var(--line);padding:.6rem;border-radius:.4rem}
table{border-collapse:collapse;width:100%}
th,td{text-align:left;vertical-align:top;padding:.2rem .5rem;border-bottom:1px solid var(--line)}
td:first-child,th:first-child{overflow-wrap:normal}summary small{opacity:.75}
.method{display:inline-block;min-width:4.2rem;font-weight:700}
"""
_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
POLICY = (
    f"default-src 'none'; style-src 'sha256-{_HASH}'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
"""What the page may load: its own style, and nothing else."""


def docs_page(document: Mapping[str, Any]) -> str:
    """The page.

    Args:
        document: The OpenAPI document.
    """
    operations = [
        (operation.get("tags", [""])[0], method.upper(), path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    parts = []
    for tag, group in groupby(operations, key=lambda each: each[0]):
        parts.append(f"<h2>{html.escape(tag)}</h2>")
        parts += [_operation(method, path, operation) for _, method, path, operation in group]
    schemas = document.get("components", {}).get("schemas", {})
    parts.append("<h2>Schemas</h2>")
    parts += [
        f'<details id="{html.escape(name)}"><summary><code>{html.escape(name)}</code></summary>'
        f"{_json(schema)}</details>"
        for name, schema in sorted(schemas.items())
    ]
    title = html.escape(document["info"]["title"])
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{title}: routes</title><style>{_STYLE}</style></head><body>"
        f"<h1>{title} {html.escape(document['info']['version'])}</h1>"
        f"<p>{html.escape(document['info'].get('summary', ''))} For programs, the same is "
        '<a href="/openapi.json">openapi.json</a>. Where a token is needed, send it as '
        "<code>Authorization: Bearer TOKEN</code>.</p>"
        f"{''.join(parts)}</body></html>"
    )


def _operation(method: str, path: str, operation: Mapping[str, Any]) -> str:
    scopes = [scope for each in operation.get("security", ()) for names in each.values()
              for scope in names]  # fmt: skip
    first, _, more = str(operation.get("description", "")).partition("\n\n")
    lines = [
        f'<details><summary><span class="method">{html.escape(method)}</span> '
        f"<code>{html.escape(path)}</code> <small>{html.escape(first)}</small></summary>",
        f"<p>{html.escape(more)}</p>" if more else "",
    ]
    if scopes:
        lines.append(f"<p>Scope: {html.escape(', '.join(scopes))}</p>")
    if rows := "".join(_parameters(operation)):
        lines.append(f"<table><tr><th>parameter</th><th></th><th></th></tr>{rows}</table>")
    for media, content in operation.get("requestBody", {}).get("content", {}).items():
        named = ", ".join(_names({"content": {media: content}}))
        lines.append(f"<p>Body, <code>{html.escape(media)}</code>: {named}</p>")
        if not named:
            lines.append(_json(content["schema"]))
    rows = "".join(
        f"<tr><td>{html.escape(status)}</td><td>{html.escape(told.get('description', ''))}</td>"
        f"<td>{', '.join(_names(told))}</td></tr>"
        for status, told in sorted(operation.get("responses", {}).items())
    )
    lines.append(f"<table><tr><th>status</th><th></th><th></th></tr>{rows}</table></details>")
    return "".join(lines)


def _parameters(operation: Mapping[str, Any]) -> Iterator[str]:
    for each in operation.get("parameters", ()):
        needed = " (needed)" if each.get("required") else ""
        schema = {key: value for key, value in each["schema"].items() if key != "title"}
        yield (
            f"<tr><td><code>{html.escape(each['name'])}</code> in {html.escape(each['in'])}{needed}"
            f"</td><td>{html.escape(each.get('description', ''))}</td>"
            f"<td><code>{html.escape(json.dumps(schema))}</code></td></tr>"
        )


def _names(told: Mapping[str, Any]) -> Iterator[str]:
    """Links to the schemas of an answer."""
    for content in told.get("content", {}).values():
        name = str(content.get("schema", {}).get("$ref", "")).rpartition("/")[2]
        if name:
            yield f'<a href="#{html.escape(name)}">{html.escape(name)}</a>'


def _json(schema: Any) -> str:
    return f"<pre>{html.escape(json.dumps(schema, indent=2, ensure_ascii=False))}</pre>"
