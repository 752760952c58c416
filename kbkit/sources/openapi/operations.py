"""Write the endpoints of an OpenAPI description as Markdown."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from kbkit.sources.markdown.lines import block_markdown, inline_markdown, labelled, table_cell
from kbkit.sources.openapi.schemas import Node, References, Schemas
from kbkit.text.markdown.writing import code_span, escape, fence


class Security:
    """Writes security schemes and the requirements of operations."""

    def __init__(self, root: Node, references: References) -> None:
        self._required = root.get("security")
        self._schemes = root.get("components").get("securitySchemes")
        self._references = references

    def schemes(self) -> list[str]:
        lines = []
        for name, part in self._schemes.items():
            scheme = self._references.resolve(part)
            description = inline_markdown(scheme.get("description").value)
            lines.append(labelled(f"-   {code_span(name)} ({_how(scheme)})", description))
            for flow, inner in scheme.get("flows").items():
                urls = [
                    f"{label} {code_span(inner.text(key))}"
                    for key, label in (
                        ("authorizationUrl", "authorize at"),
                        ("tokenUrl", "tokens at"),
                    )
                    if inner.text(key)
                ]
                lines.append(f"    -   {escape(flow)}: {', '.join(urls)}".rstrip(": "))
                for scope, what in inner.get("scopes").items():
                    text = inline_markdown(what.value)
                    lines.append(labelled(f"        -   {code_span(scope)}", text))
        return lines

    def section(self, operation: Node) -> str:
        """Write the security requirements of an operation; ``""`` if there are none."""
        lines = []
        for requirement in self._requirements(operation):
            parts = []
            for name, scopes in requirement.items():
                scheme = self._scheme(name)
                named = [code_span(str(scope.value)) for scope in scopes.parts()]
                with_scopes = f" with {', '.join(named)}" if named else ""
                how = f" ({_how(scheme)})" if scheme.value else ""
                parts.append(f"{code_span(name)}{how}{with_scopes}")
            lines.append("-   " + (" and ".join(parts) or "none: it may be called without"))
        if not lines:
            return ""
        words = "One of these:\n\n" if len(lines) > 1 else ""
        return f"## Authentication\n\n{words}" + "\n".join(lines)

    def credentials(self, operation: Node) -> Iterator[tuple[str, str]]:
        """Yield a header or query parameter for each scheme of the first requirement."""
        requirements = (part.items() for part in self._requirements(operation) if part.value)
        for name, _ in next(requirements, []):
            yield _credentials(self._scheme(name))

    def _requirements(self, operation: Node) -> list[Node]:
        own = operation.get("security")
        return (own if own.value is not None else self._required).parts()

    def _scheme(self, name: str) -> Node:
        return self._references.resolve(self._schemes.get(name))


def _how(scheme: Node) -> str:
    kind = scheme.text("type")
    if kind == "apiKey":
        return f"API key in the {escape(scheme.text('in'))} {code_span(scheme.text('name'))}"
    if kind == "http":
        shape = scheme.text("bearerFormat")
        return f"HTTP {escape(scheme.text('scheme'))}" + (f", {escape(shape)}" if shape else "")
    if kind == "oauth2":
        return "OAuth 2"
    if kind == "openIdConnect":
        return f"OpenID Connect, {code_span(scheme.text('openIdConnectUrl'))}"
    return "mutual TLS" if kind == "mutualTLS" else escape(kind) or "unknown"


def _credentials(scheme: Node) -> tuple[str, str]:
    kind = scheme.text("type")
    if kind == "apiKey":
        name = scheme.text("name")
        match scheme.text("in"):
            case "query":
                return "", f"{quote(name)}=API_KEY"
            case "cookie":
                return f"Cookie: {name}=API_KEY", ""
            case _:
                return f"{name}: API_KEY", ""
    if kind == "http" and scheme.text("scheme").lower() == "basic":
        return "Authorization: Basic BASE64_OF_USER_AND_PASSWORD", ""
    if kind in ("http", "oauth2", "openIdConnect"):
        return "Authorization: Bearer TOKEN", ""
    return "", ""


METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace", "query")
_PLACES = ("path", "query", "header", "cookie")
_FORMS = (("multipart/form-data", "-F"), ("application/x-www-form-urlencoded", "--data-urlencode"))
MAX_EXAMPLE_LENGTH = 20_000


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one path.

    Attributes:
        path: Path template, or name of the webhook.
        name: Its ``operationId``, or ``""``.
    """

    path: str
    method: str
    name: str
    summary: str
    tags: tuple[str, ...]
    deprecated: bool
    webhook: bool
    item: Node
    node: Node

    @property
    def title(self) -> str:
        return labelled(f"{self.method.upper()} {self.path}", self.summary or self.name)


class Operations:
    """Writes the endpoints of one description."""

    def __init__(
        self, root: Node, references: References, schemas: Schemas, servers: list[str]
    ) -> None:
        self._root = root
        self._security = Security(root, references)
        self._references = references
        self._schemas = schemas
        self._servers = servers

    def listed(self) -> Iterator[Operation]:
        for section in ("paths", "webhooks"):
            for path, part in self._root.get(section).items():
                if path.startswith("x-"):
                    continue
                item = self._references.resolve(part)
                for method in METHODS:
                    node = item.get(method)
                    if isinstance(node.value, dict):
                        yield self._operation(path, method, item, node, section == "webhooks")

    def _operation(
        self, path: str, method: str, item: Node, node: Node, webhook: bool
    ) -> Operation:
        tags = tuple(str(tag.value) for tag in node.get("tags").parts() if tag.value)
        return Operation(
            path=path,
            method=method,
            name=node.text("operationId"),
            summary=node.text("summary") or item.text("summary"),
            tags=tuple(dict.fromkeys(" ".join(tag.split())[:100] for tag in tags)),
            deprecated=node.value.get("deprecated") is True,
            webhook=webhook,
            item=item,
            node=node,
        )

    def page(self, operation: Operation) -> str:
        node = operation.node
        call = f"{operation.method.upper()} {operation.path}"
        blocks = [f"# {escape(operation.title)}", fence(call, "http")]
        if operation.webhook:
            blocks.append("A webhook: the server sends this request to an address of yours.")
        if operation.deprecated:
            blocks.append("> **Deprecated**")
        blocks.append(block_markdown(operation.item.get("description").value, 2))
        blocks.append(block_markdown(node.get("description").value, 2))
        facts = []
        if operation.name:
            facts.append(f"-   Operation: {code_span(operation.name)}")
        if operation.tags:
            facts.append("-   Tags: " + ", ".join(escape(tag) for tag in operation.tags))
        if outside := node.get("externalDocs").text("url"):
            facts.append(f"-   More: {escape(outside)}")
        blocks.append("\n".join(facts))
        parameters = self._parameters(operation)
        blocks.append(self._table(parameters))
        body = self._references.resolve(node.get("requestBody"))
        blocks.append(self._request(body))
        blocks.append(self._responses(node.get("responses")))
        blocks.append(self._security.section(node))
        blocks.append(self._callbacks(node.get("callbacks")))
        if not operation.webhook:
            example = self._call(operation, parameters, body)
            blocks.append("## Example call\n\n" + fence(example, "sh"))
        return "\n\n".join(block for block in blocks if block.strip()) + "\n"

    # --- parameters ---------------------------------------------------------------------------

    def _parameters(self, operation: Operation) -> list[Node]:
        """Return parameters of the path item and the operation; the operation's win."""
        by_place: dict[tuple[str, str], Node] = {}
        for holder in (operation.item, operation.node):
            for part in holder.get("parameters").parts():
                parameter = self._references.resolve(part)
                if name := parameter.text("name"):
                    by_place[parameter.text("in"), name] = parameter
        order = {place: rank for rank, place in enumerate(_PLACES)}
        return sorted(by_place.values(), key=lambda node: order.get(node.text("in"), 9))

    def _table(self, parameters: list[Node]) -> str:
        if not parameters:
            return ""
        rows = ["| Name | In | Type | Required | Description |", "| --- | --- | --- | --- | --- |"]
        for parameter in parameters:
            schema = _schema_of(parameter)
            parts = [
                inline_markdown(parameter.get("description").value),
                self._schemas.notes(schema),
            ]
            if parameter.value.get("deprecated") is True:
                parts.append("Deprecated.")
            shown = self._shown_example(parameter)
            if shown is not None:
                parts.append(f"Example: {code_span(_text(shown)[:300])}.")
            unique = dict.fromkeys(part for part in parts if part)
            cells = (
                code_span(parameter.text("name")),
                escape(parameter.text("in")),
                self._schemas.kind(schema),
                "yes" if parameter.value.get("required") is True else "no",
                " ".join(unique),
            )
            rows.append("| " + " | ".join(table_cell(text) for text in cells) + " |")
        return "## Parameters\n\n" + "\n".join(rows)

    def _shown_example(self, holder: Node) -> Any:
        if isinstance(holder.value, dict) and "example" in holder.value:
            return holder.value["example"]
        for _, part in holder.get("examples").items():
            example = self._references.resolve(part)
            if isinstance(example.value, dict) and "value" in example.value:
                return example.value["value"]
        return None

    # --- bodies -------------------------------------------------------------------------------

    def _request(self, body: Node) -> str:
        if not isinstance(body.value, dict) or not body.value:
            return ""
        required = " (required)" if body.value.get("required") is True else ""
        blocks = [f"## Request body{required}", block_markdown(body.get("description").value, 3)]
        blocks += self._contents(body.get("content"), "###", "readOnly")
        return "\n\n".join(block for block in blocks if block)

    def _responses(self, responses: Node) -> str:
        blocks = []
        for status, part in responses.items():
            if status.startswith("x-"):
                continue
            response = self._references.resolve(part)
            words = _STATUS.get(status.upper(), "")
            blocks.append(f"### {escape(status)}" + (f" {words}" if words else ""))
            blocks.append(block_markdown(response.get("description").value, 4))
            headers = []
            for name, inner in response.get("headers").items():
                header = self._references.resolve(inner)
                schema = _schema_of(header)
                description = inline_markdown(
                    header.get("description").value
                ) or self._schemas.notes(schema)
                head = f"-   {code_span(name)} ({self._schemas.kind(schema)})"
                headers.append(labelled(head, description))
            if headers:
                blocks.append("Headers:\n\n" + "\n".join(headers))
            blocks += self._contents(response.get("content"), "####", "writeOnly")
            links = [code_span(name) for name, _ in response.get("links").items()]
            if links:
                blocks.append("Links: " + ", ".join(links))
        if not blocks:
            return ""
        return "\n\n".join(["## Responses", *(block for block in blocks if block)])

    def _contents(self, content: Node, hashes: str, leave_out: str) -> list[str]:
        groups: dict[str, list[str]] = {}
        for name, part in content.items():
            schema = part.get("schema")
            text = []
            if schema.value is not None:
                notes = self._schemas.notes(schema)
                text.append(self._schemas.kind(schema) + (f". {notes}" if notes else ""))
                lines = self._schemas.lines(schema)
                if lines:
                    text.append("\n".join(lines))
            shown = self._shown_example(part)
            if shown is None and schema.value is not None and "json" in name.lower():
                shown = self._schemas.example(schema, leave_out)
            if shown is not None:
                language = "json" if not isinstance(shown, str) else _language(name)
                text.append(fence(_text(shown)[:MAX_EXAMPLE_LENGTH], language))
            groups.setdefault("\n\n".join(text), []).append(name)
        return [
            f"{hashes} {', '.join(code_span(name) for name in names)}\n\n{text}".rstrip()
            for text, names in groups.items()
        ]

    def _callbacks(self, callbacks: Node) -> str:
        lines = []
        for name, part in callbacks.items():
            for address, item in self._references.resolve(part).items():
                resolved = self._references.resolve(item)
                for method in METHODS:
                    node = resolved.get(method)
                    if isinstance(node.value, dict):
                        description = inline_markdown(
                            node.get("summary").value or node.get("description").value
                        )
                        head = f"-   {code_span(name)}: {code_span(f'{method.upper()} {address}')}"
                        lines.append(labelled(head, description))
        return "## Callbacks\n\n" + "\n".join(lines) if lines else ""

    # --- the example call ---------------------------------------------------------------------

    def _call(self, operation: Operation, parameters: list[Node], body: Node) -> str:
        path, query = operation.path, []
        headers: list[str] = []
        for parameter in parameters:
            name, place = parameter.text("name"), parameter.text("in")
            value = self._parameter_value(parameter)
            if place == "path":
                path = path.replace("{" + name + "}", quote(_text(value), safe=""))
            elif parameter.value.get("required") is True:
                if place == "query":
                    values = value if isinstance(value, list) else [value]
                    query += [f"{quote(name)}={quote(_text(part), safe='')}" for part in values]
                elif place == "header":
                    headers.append(f"{name}: {_text(value)}")
                elif place == "cookie":
                    headers.append(f"Cookie: {name}={_text(value)}")
        for header, pair in self._security.credentials(operation.node):
            headers += [header] if header else []
            query += [pair] if pair else []
        own = operation.node.get("servers").parts() or operation.item.get("servers").parts()
        server = next((part.text("url") for part in own if "://" in part.text("url")), "")
        url = (
            (server.rstrip("/") or self._servers[0])
            + path
            + ("?" + "&".join(query) if query else "")
        )
        parts = [f"curl -X {operation.method.upper()} {shlex.quote(url)}"]
        data = self._data(body, headers)
        parts += [f"-H {shlex.quote(' '.join(header.split()))}" for header in headers]
        if data:
            parts.append(data)
        return " \\\n  ".join(parts)

    def _parameter_value(self, parameter: Node) -> Any:
        shown = self._shown_example(parameter)
        value = self._schemas.example(_schema_of(parameter)) if shown is None else shown
        return parameter.text("name").upper() if value in (None, "string", {}, []) else value

    def _data(self, body: Node, headers: list[str]) -> str:
        """Return curl's option for the body; add its media type to `headers`."""
        offered = body.get("content").items()
        if not offered:
            return ""
        name, part = next((pair for pair in offered if "json" in pair[0].lower()), offered[0])
        shown = self._shown_example(part)
        value = self._schemas.example(part.get("schema"), "readOnly") if shown is None else shown
        form = ""
        if isinstance(value, dict):
            form = next((flag for kind, flag in _FORMS if name.lower().startswith(kind)), "")
        if form != "-F":  # curl sets this header itself
            headers.append(f"Content-Type: {name}")
        if form:
            pairs = (f"{form} {shlex.quote(f'{key}={_text(value[key])}')}" for key in value)
            return " \\\n  ".join(pairs)
        if "json" not in name.lower() and not isinstance(value, str):
            return "--data-binary @FILE"
        return f"-d {shlex.quote(_text(value)[:MAX_EXAMPLE_LENGTH])}"


def _schema_of(holder: Node) -> Node:
    schema = holder.get("schema")
    if schema.value is None:
        schema = next((part.get("schema") for _, part in holder.get("content").items()), schema)
    return schema


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    indent = 2 if isinstance(value, (dict, list)) else None
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _language(media_type: str) -> str:
    match = re.search(r"\b(json|xml|yaml|html|csv|graphql)\b", media_type.lower())
    return match[1] if match else ""


_STATUS = {
    **{
        code: HTTPStatus(int(code)).phrase.capitalize()
        for code in str.split("""
            201 202 204 301 302 303 304 307 400 401 403 404 405 406 409 410 412 415 429 500 502 503
        """)
    },
    "200": "OK",
    "413": "Content too large",
    "422": "Unprocessable content",
    "DEFAULT": "(any other status)",
}
