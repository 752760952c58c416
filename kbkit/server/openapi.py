"""The OpenAPI document, complete with the errors of middleware."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from kbkit.server.responses import ProblemDetails


def describe(app: FastAPI) -> None:
    """Add problem details to the OpenAPI document of an application."""

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            schema = get_openapi(
                title=app.title,
                version=app.version,
                summary=app.summary,
                routes=app.routes,
                separate_input_output_schemas=app.separate_input_output_schemas,
            )
            schemas = schema.setdefault("components", {}).setdefault("schemas", {})
            schemas["ProblemDetails"] = ProblemDetails.model_json_schema()
            for path in schema["paths"].values():
                for operation in path.values():
                    _document_problems(operation)
                    for parameter in operation.get("parameters", ()):
                        if parameter["name"] == "if-match":  # HTTP defines its format
                            parameter["schema"] = {"type": "string"}
                        _remove_null(parameter["schema"])
            for unused in ("HTTPValidationError", "ValidationError"):
                schemas.pop(unused, None)
            _require_types(schema, schemas)
            for name, shape in schemas.items():
                if name.startswith("Body_"):
                    for field in shape["properties"].values():
                        _remove_null(field)
            app.openapi_schema = schema
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]  # as FastAPI's guide has it


def _document_problems(operation: dict[str, Any]) -> None:
    response = operation.get("responses", {}).get("422")
    if response and "application/json" in response.get("content", {}):
        operation["responses"]["422"] = {
            "description": "Invalid request",
            "content": {
                "application/problem+json": {
                    "schema": {"$ref": "#/components/schemas/ProblemDetails"}
                }
            },
        }


_OPTIONAL_TYPES = ("rules",)


def _require_types(part: Any, schemas: dict[str, Any]) -> None:
    if isinstance(part, list):
        for each in part:
            _require_types(each, schemas)
    elif isinstance(part, dict):
        key = part["discriminator"]["propertyName"] if "discriminator" in part else None
        for each in part.get("oneOf", ()) if isinstance(key, str) else ():
            shape = schemas[each["$ref"].rpartition("/")[2]]
            required = shape.setdefault("required", [])
            if key not in required and shape["properties"][key].get("const") not in _OPTIONAL_TYPES:
                required.append(key)
        for each in part.values():
            _require_types(each, schemas)


def _remove_null(field: dict[str, Any]) -> None:
    kinds = [each for each in field.get("anyOf", ()) if each != {"type": "null"}]
    if len(kinds) == 1:
        del field["anyOf"]
        field.update(kinds[0])


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
"""Content security policy: only the page's own style."""


def docs_page(document: Mapping[str, Any]) -> str:
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
    scopes = [
        scope
        for each in operation.get("security", ())
        for names in each.values()
        for scope in names
    ]
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
        links = ", ".join(_names({"content": {media: content}}))
        lines.append(f"<p>Body, <code>{html.escape(media)}</code>: {links}</p>")
        if not links:
            lines.append(_json(content["schema"]))
    rows = "".join(
        f"<tr><td>{html.escape(status)}</td><td>{html.escape(response.get('description', ''))}</td>"
        f"<td>{', '.join(_names(response))}</td></tr>"
        for status, response in sorted(operation.get("responses", {}).items())
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


def _names(response: Mapping[str, Any]) -> Iterator[str]:
    for content in response.get("content", {}).values():
        name = str(content.get("schema", {}).get("$ref", "")).rpartition("/")[2]
        if name:
            yield f'<a href="#{html.escape(name)}">{html.escape(name)}</a>'


def _json(schema: Any) -> str:
    return f"<pre>{html.escape(json.dumps(schema, indent=2, ensure_ascii=False))}</pre>"
