"""Write the endpoints of an OpenAPI description as Markdown."""

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from kbkit.sources.markdown.lines import with_label
from kbkit.sources.openapi.schemas import Node, Schemas
from kbkit.sources.page_templates import fill_template
from kbkit.text.markdown.writing import code_span, escape, fence, pipe_table


def addresses_of(flow: Node) -> str:
    """Write the addresses of an OAuth 2 flow."""
    labels = (("authorize at", "authorizationUrl"), ("tokens at", "tokenUrl"))
    urls = ((label, flow.text(key)) for label, key in labels)
    return ", ".join(f"{label} {code_span(url)}" for label, url in urls if url)


def how_of(scheme: Node) -> str:
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
    kind, name, place = scheme.text("type"), scheme.text("name"), scheme.text("in")
    if kind == "apiKey" and place == "query":
        return "", f"{quote(name)}=API_KEY"
    if kind == "apiKey":
        return (f"Cookie: {name}=" if place == "cookie" else f"{name}: ") + "API_KEY", ""
    if kind == "http" and scheme.text("scheme").lower() == "basic":
        return "Authorization: Basic BASE64_OF_USER_AND_PASSWORD", ""
    bearer = kind in ("http", "oauth2", "openIdConnect")
    return "Authorization: Bearer TOKEN" if bearer else "", ""


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
    webhook: bool
    item: Node
    node: Node

    @property
    def deprecated(self) -> bool:
        return self.node.flag("deprecated")

    @property
    def title(self) -> str:
        return with_label(f"{self.method.upper()} {self.path}", self.summary or self.name)


class Operations:
    """Writes the endpoints of one description."""

    def __init__(self, root: Node, schemas: Schemas, servers: list[str]) -> None:
        self._root = root
        self.schemes = root.get("components").get("securitySchemes")
        self._schemas = schemas
        self._servers = servers

    def iter_operations(self) -> Iterator[Operation]:
        for group in ("paths", "webhooks"):
            for path, item in self._root.get(group).items():
                if path.startswith("x-"):
                    continue
                for method, node in _methods(item):
                    tags = (str(tag.value) for tag in node.get("tags").parts() if tag.value)
                    yield Operation(
                        path=path,
                        method=method,
                        name=node.text("operationId"),
                        summary=node.text("summary") or item.text("summary"),
                        tags=tuple(dict.fromkeys(" ".join(tag.split())[:100] for tag in tags)),
                        webhook=group == "webhooks",
                        item=item,
                        node=node,
                    )

    def page(self, operation: Operation) -> str:
        parameters = self._parameters(operation)
        webhook = operation.webhook
        return fill_template(
            "endpoint.md.j2",
            operation=operation,
            node=operation.node,
            table=self._table(parameters),
            call="" if webhook else self._call(operation, parameters),
            requirements=self._requirement_lines(operation.node),
            schemas=self._schemas,
            contents_of=self._contents,
            schema_of=_schema_of,
            methods=_methods,
            phrases=_PHRASES,
        )

    def _requirement_lines(self, operation: Node) -> list[str]:
        lines = []
        for requirement in self._requirements(operation):
            parts = []
            for name, scopes in requirement.items():
                scheme = self.schemes.get(name)
                names = ", ".join(code_span(str(scope.value)) for scope in scopes.parts())
                method = f" ({how_of(scheme)})" if scheme.value else ""
                parts.append(code_span(name) + method + (f" with {names}" if names else ""))
            lines.append("-   " + (" and ".join(parts) or "none: it may be called without"))
        return ["One of these:", "", *lines] if len(lines) > 1 else lines

    def _requirements(self, operation: Node) -> list[Node]:
        declared = operation.get("security")
        return (declared if declared.value is not None else self._root.get("security")).parts()

    def _parameters(self, operation: Operation) -> list[Node]:
        """Return parameters of the path item and the operation; the operation's win."""
        by_place = {
            (parameter.text("in"), name): parameter
            for holder in (operation.item, operation.node)
            for parameter in holder.get("parameters").parts()
            if (name := parameter.text("name"))
        }
        order = {place: rank for rank, place in enumerate(_PLACES)}
        return sorted(by_place.values(), key=lambda node: order.get(node.text("in"), 9))

    def _table(self, parameters: list[Node]) -> str:
        if not parameters:
            return ""
        rows = [["Name", "In", "Type", "Required", "Description"]]
        for parameter in parameters:
            schema = _schema_of(parameter)
            example = _shown_example(parameter)
            parts = (
                parameter.line(),
                self._schemas.notes(schema),
                "Deprecated." if parameter.flag("deprecated") else "",
                "" if example is None else f"Example: {code_span(_text(example)[:300])}.",
            )
            rows.append(
                [
                    code_span(parameter.text("name")),
                    escape(parameter.text("in")),
                    self._schemas.kind(schema),
                    "yes" if parameter.flag("required") else "no",
                    " ".join(" ".join(dict.fromkeys(filter(None, parts))).split()),
                ]
            )
        return pipe_table(rows)

    def _contents(self, content: Node, leave_out: str) -> dict[str, list[str]]:
        """Group the media types of a body by their description."""
        groups: dict[str, list[str]] = {}
        for name, part in content.items():
            schema = part.get("schema")
            sample = _shown_example(part)
            text = []
            if schema.value is not None:
                text = [self._schemas.summary(schema), "\n".join(self._schemas.lines(schema))]
                if sample is None and "json" in name.lower():
                    sample = self._schemas.example(schema, leave_out)
            if sample is not None:
                language = _language(name) if isinstance(sample, str) else "json"
                text.append(fence(_text(sample)[:MAX_EXAMPLE_LENGTH], language))
            groups.setdefault("\n\n".join(filter(str.strip, text)), []).append(name)
        return groups

    def _call(self, operation: Operation, parameters: list[Node]) -> str:
        path, query = operation.path, []
        headers: list[str] = []
        for parameter in parameters:
            name, place = parameter.text("name"), parameter.text("in")
            value = self._parameter_value(parameter)
            if place == "path":
                path = path.replace("{" + name + "}", quote(_text(value), safe=""))
            elif not parameter.flag("required"):
                continue
            elif place == "query":
                values = value if isinstance(value, list) else [value]
                query += [f"{quote(name)}={quote(_text(part), safe='')}" for part in values]
            elif place in ("header", "cookie"):
                pair = f"{name}: {_text(value)}"
                headers.append(pair if place == "header" else f"Cookie: {name}={_text(value)}")
        required = (part.items() for part in self._requirements(operation.node) if part.value)
        for name, _ in next(required, []):
            header, pair = _credentials(self.schemes.get(name))
            headers += filter(None, [header])
            query += filter(None, [pair])
        servers = operation.node.get("servers").parts() or operation.item.get("servers").parts()
        server = next((part.text("url") for part in servers if "://" in part.text("url")), "")
        url = (server.rstrip("/") or self._servers[0]) + path + "?" * bool(query) + "&".join(query)
        data = self._data(operation.node.get("requestBody"), headers)
        return " \\\n  ".join(
            (
                f"curl -X {operation.method.upper()} {shlex.quote(url)}",
                *(f"-H {shlex.quote(' '.join(header.split()))}" for header in headers),
                *data,
            )
        )

    def _parameter_value(self, parameter: Node) -> Any:
        sample = _shown_example(parameter)
        value = self._schemas.example(_schema_of(parameter)) if sample is None else sample
        return parameter.text("name").upper() if value in (None, "string", {}, []) else value

    def _data(self, body: Node, headers: list[str]) -> list[str]:
        """Return curl's options for the body; add its media type to `headers`."""
        contents = body.get("content").items()
        if not contents:
            return []
        name, part = next((pair for pair in contents if "json" in pair[0].lower()), contents[0])
        sample = _shown_example(part)
        value = self._schemas.example(part.get("schema"), "readOnly") if sample is None else sample
        form = ""
        if isinstance(value, dict):
            form = next((flag for kind, flag in _FORMS if name.lower().startswith(kind)), "")
        if form != "-F":  # curl sets this header itself
            headers.append(f"Content-Type: {name}")
        if form:
            return [f"{form} {shlex.quote(f'{key}={_text(value[key])}')}" for key in value]
        if "json" not in name.lower() and not isinstance(value, str):
            return ["--data-binary @FILE"]
        return [f"-d {shlex.quote(_text(value)[:MAX_EXAMPLE_LENGTH])}"]


def _methods(item: Node) -> Iterator[tuple[str, Node]]:
    for method in METHODS:
        node = item.get(method)
        if isinstance(node.value, dict):
            yield method, node


def _shown_example(holder: Node) -> Any:
    if "example" in holder.members:
        return holder.members["example"]
    examples = (part.members for _, part in holder.get("examples").items())
    return next((example["value"] for example in examples if "value" in example), None)


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


_PHRASES = {str(each.value): each.phrase for each in HTTPStatus} | {"default": "(any other status)"}
