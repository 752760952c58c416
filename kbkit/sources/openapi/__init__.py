"""The source ``openapi``: one document for each endpoint and schema, and an overview.

A document's URI is the description's with the JSON pointer of the part (RFC 6901):
``https://example.org/api.yaml#/paths/~1pets/get``. The overview has no pointer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, urljoin, urlsplit

from kbkit.errors import SourceError
from kbkit.models import DocumentType, License, SourceDocument
from kbkit.recipes import OpenApiSource
from kbkit.regular_files import bytes_of
from kbkit.sources import DiskPlace, Outcome, SourceContext, SourceEvent
from kbkit.sources.decode import binary_kind, decode
from kbkit.sources.markdown.lines import block_markdown, inline_markdown, labelled
from kbkit.sources.openapi.operations import MAX_EXAMPLE_LENGTH, Operation, Operations, Security
from kbkit.sources.openapi.schemas import Node, References, Schemas
from kbkit.sources.untrusted import load_values
from kbkit.sources.web import Fetcher
from kbkit.sources.web.robots import Robots
from kbkit.sources.web.urls import canonical
from kbkit.text.markdown.structure import plain_text
from kbkit.text.markdown.writing import code_span, escape, fence

_MAX_BYTES = 50_000_000


class OpenApiReader:
    """Reads an API description from a file or address."""

    type = "openapi"
    exhaustive = True

    def __init__(self, spec: OpenApiSource) -> None:
        self._spec = spec

    def events(self, context: SourceContext) -> Iterator[SourceEvent]:
        """Yield the documents of the description, then a skip event for each broken reference."""
        path: Path | None = None
        if self._spec.url:
            uri, text = self._fetched(self._spec.url, context)
        else:
            path = context.base / Path(self._spec.path or "").expanduser()
            place = context.place or DiskPlace.of(self._spec.path or "", context.base)
            uri, text = place.uri(path), _read(path, self._spec.path or "")
        try:
            values = load_values(text)
        except ValueError as error:
            raise SourceError(f"{uri}: {error}") from None
        if reason := version_problem(values):
            raise SourceError(f"{uri}: {reason}")
        description = ApiDescription(values, uri, path)
        for yielded, document in enumerate(description.documents()):
            if context.stop() or yielded >= self._spec.limit:
                return
            yield SourceEvent(document.uri, Outcome.FETCHED, self._labelled(document))
        for problem in description.problems():
            yield SourceEvent(uri, Outcome.SKIPPED, reason=problem)

    def _labelled(self, document: SourceDocument) -> SourceDocument:
        return replace(
            document,
            document_type=self._spec.document_type or document.document_type,
            tags=tuple(dict.fromkeys((*self._spec.tags, *document.tags))),
        )

    def _fetched(self, url: str, context: SourceContext) -> tuple[str, str]:
        # unconditional: an unchanged description must still yield its documents
        with Fetcher(
            user_agent=context.user_agent,
            timeout=context.timeout,
            max_bytes=self._spec.max_bytes,
            allow_private=self._spec.allow_private,
            stop=context.stop,
        ) as fetcher:
            verdict = Robots(fetcher, context.user_agent).verdict(url)
            if verdict is not None:
                raise SourceError(f"{url}: {verdict.reason}")
            response = fetcher.get(url)
        if response.outcome is not Outcome.FETCHED:
            raise SourceError(f"{url}: {response.reason}")
        if kind := binary_kind(response.body):
            raise SourceError(f"{url}: {kind}, not JSON or YAML")
        # the requested address, even after a redirect to another release
        text = decode(response.body, response.charset, markup=False)
        return canonical(url) or url, text


def _read(path: Path, name: str) -> str:
    try:
        body = bytes_of(path, _MAX_BYTES + 1)
    except OSError as error:
        raise SourceError(f"{name}: cannot be read ({error.strerror})") from None
    if len(body) > _MAX_BYTES:
        raise SourceError(f"{name}: larger than {_MAX_BYTES / 1e6:g} MB")
    if kind := binary_kind(body):
        raise SourceError(f"{name}: {kind}, not JSON or YAML")
    return decode(body, markup=False)


def is_openapi(values: Any) -> bool:
    """Whether JSON values look like an OpenAPI description (3.x, by its keys)."""
    return (
        isinstance(values, dict)
        and "openapi" in values
        and any(key in values for key in ("paths", "webhooks", "components"))
    )


def version_problem(values: Any) -> str:
    """Return the reason why a description cannot be read, or ``""``."""
    if isinstance(values, dict) and "swagger" in values:
        version = str(values["swagger"])[:10]
        return (
            f"Swagger {version} is not read; convert it to OpenAPI 3 "
            "(swagger2openapi, or the Swagger editor's “Convert to OpenAPI 3”)"
        )
    if not is_openapi(values):
        return "no OpenAPI description (it has no keys openapi and paths)"
    version = str(values["openapi"])
    if not re.match(r"3\.\d", version):
        return f"OpenAPI {version[:10]} is not read; 3.0 and 3.1 are"
    return ""


def documents(values: Any, base_uri: str, *, path: Path | None = None) -> Iterator[SourceDocument]:
    if reason := version_problem(values):
        raise SourceError(f"{base_uri}: {reason}")
    yield from ApiDescription(values, base_uri, path).documents()


class ApiDescription:
    """One OpenAPI description."""

    def __init__(self, values: dict[str, Any], uri: str, path: Path | None = None) -> None:
        self._uri = uri.partition("#")[0]
        self._references = References(values, path)
        self._root = Node(values)
        self._info = self._root.get("info")
        self._name = self._info.text("title") or uri.rpartition("/")[2] or "API"
        self._schemas = Schemas(self._references)
        self._operations = Operations(
            self._root, self._references, self._schemas, _servers(self._root, self._uri)
        )

    def problems(self) -> list[str]:
        """Return broken references; complete after all documents."""
        return sorted(set(self._references.problems.values()))

    def documents(self) -> Iterator[SourceDocument]:
        """Yield the overview, then the endpoints, the webhooks and the schemas."""
        operations = list(self._operations.listed())
        yield self._document(
            "",
            self._name,
            self._overview(operations),
            (),
            {
                "part": "overview",
                **_description(self._info.text("summary") or self._info.get("description").value),
            },
        )
        for operation in operations:
            metadata: dict[str, Any] = {
                "part": "webhook" if operation.webhook else "endpoint",
                "method": operation.method.upper(),
                "path": operation.path,
            }
            if operation.name:
                metadata["operation_id"] = operation.name
            if operation.deprecated:
                metadata["deprecated"] = True
            self._schemas.begin()
            description = operation.node.get("description").value or operation.summary
            metadata |= _description(description)
            page = self._operations.page(operation)
            section = "webhooks" if operation.webhook else "paths"
            pointer = _pointer(section, operation.path, operation.method)
            yield self._document(pointer, operation.title, page, operation.tags, metadata)
        for name, schema in self._root.get("components").get("schemas").items():
            self._schemas.begin()
            page = self._schema_page(name, schema)
            pointer = _pointer("components", "schemas", name)
            description = self._references.resolve(schema).get("description").value
            metadata = {"part": "schema", **_description(description)}
            yield self._document(pointer, f"{name} schema", page, (), metadata)

    def _document(
        self,
        pointer: str,
        title: str,
        content: str,
        tags: tuple[str, ...],
        metadata: dict[str, Any],
    ) -> SourceDocument:
        about = {"api": self._name}
        if version := self._info.text("version"):
            about["version"] = version
        about |= self._license().to_metadata()
        return SourceDocument(
            self._uri + pointer,
            " ".join(title.split())[:500],
            content,
            DocumentType.API_SPEC,
            tags,
            {**about, **metadata},
        )

    def _license(self) -> License:
        stated = self._info.get("license")
        return License.stated(stated.text("identifier") or stated.text("name"), stated.text("url"))

    def _overview(self, operations: list[Operation]) -> str:
        info = self._info
        blocks = [f"# {escape(self._name)}"]
        lines = []
        if version := info.text("version"):
            lines.append(f"-   Version: {escape(version)}")
        lines.append(f"-   Description format: OpenAPI {escape(self._root.text('openapi'))}")
        for key, label in (("contact", "Contact"), ("license", "License")):
            part = info.get(key)
            parts = [part.text(field) for field in ("name", "identifier", "email", "url")]
            if text := ", ".join(escape(word) for word in parts if word):
                lines.append(f"-   {label}: {text}")
        if terms := info.text("termsOfService"):
            lines.append(f"-   Terms of service: {escape(terms)}")
        blocks.append("\n".join(lines))
        blocks.append(inline_markdown(info.text("summary")))
        blocks.append(block_markdown(info.get("description").value, 2))
        servers = self._server_lines()
        if servers:
            blocks.append("## Servers\n\n" + "\n".join(servers))
        schemes = Security(self._root, self._references).schemes()
        if schemes:
            blocks.append("## Authentication\n\n" + "\n".join(schemes))
        blocks.append(self._endpoint_list(operations))
        names = [name for name, _ in self._root.get("components").get("schemas").items()]
        if names:
            blocks.append("## Schemas\n\n" + "\n".join(f"-   {code_span(name)}" for name in names))
        return "\n\n".join(block for block in blocks if block.strip()) + "\n"

    def _server_lines(self) -> list[str]:
        lines = []
        for server in self._root.get("servers").parts():
            url = server.text("url")
            if not url:
                continue
            description = inline_markdown(server.get("description").value)
            lines.append(labelled(f"-   {code_span(url)}", description))
            for name, variable in server.get("variables").items():
                choices = [str(part.value) for part in variable.get("enum").parts()]
                words = f"default {code_span(variable.text('default'))}"
                if choices:
                    words += ", one of " + ", ".join(code_span(choice) for choice in choices[:50])
                description = inline_markdown(variable.get("description").value)
                lines.append(labelled(f"    -   {code_span(name)} ({words})", description))
        return lines

    def _endpoint_list(self, operations: list[Operation]) -> str:
        described_tags = {
            tag.text("name"): tag.get("description").value for tag in self._root.get("tags").parts()
        }
        named = [tag for operation in operations for tag in operation.tags]
        blocks = []
        for tag in dict.fromkeys([*described_tags, *named]):
            lines = [_entry(part) for part in operations if tag in part.tags and not part.webhook]
            text = block_markdown(described_tags.get(tag), 4)
            if tag and (lines or text):
                blocks += [f"### {escape(tag)}", text, "\n".join(lines)]
        loose = [_entry(part) for part in operations if not part.tags and not part.webhook]
        if loose:
            blocks += ["### Other endpoints" if blocks else "", "\n".join(loose)]
        if blocks:
            blocks.insert(0, "## Endpoints")
        hooks = [_entry(part) for part in operations if part.webhook]
        if hooks:
            blocks += ["## Webhooks", "\n".join(hooks)]
        return "\n\n".join(block for block in blocks if block.strip())

    def _schema_page(self, name: str, schema: Node) -> str:
        resolved = self._references.resolve(schema)
        blocks = [f"# {escape(name)}"]
        value = resolved.value if isinstance(resolved.value, dict) else {}
        blocks.append(block_markdown(value.get("description"), 2))
        plain = Node(
            {key: inner for key, inner in value.items() if key not in ("description", "title")},
            resolved.file,
        )
        kind = self._schemas.kind(plain) if value else "anything"
        notes = self._schemas.notes(plain)
        blocks.append(f"Type: {kind}" + (f". {notes}" if notes else ""))
        lines = self._schemas.lines(Node(resolved.value, resolved.file, name, schema_ref(name)))
        if lines:
            blocks.append("## Fields\n\n" + "\n".join(lines))
        example = self._schemas.example(schema)
        if example is not None:
            text = json.dumps(example, ensure_ascii=False, indent=2)[:MAX_EXAMPLE_LENGTH]
            blocks.append("## Example\n\n" + fence(text, "json"))
        return "\n\n".join(block for block in blocks if block.strip()) + "\n"


def schema_ref(name: str) -> str:
    return "#/components/schemas/" + name.replace("~", "~0").replace("/", "~1")


def _entry(operation: Operation) -> str:
    head = code_span(f"{operation.method.upper()} {operation.path}")
    gone = " (deprecated)" if operation.deprecated else ""
    return labelled(f"-   {head}{gone}", inline_markdown(operation.summary))


def _description(text: Any) -> dict[str, str]:
    first = str(text).strip().partition("\n\n")[0] if isinstance(text, str) else ""
    paragraph = plain_text(inline_markdown(first))
    return {"description": paragraph} if paragraph else {}


def _pointer(*keys: str) -> str:
    escaped = (key.replace("~", "~0").replace("/", "~1") for key in keys)
    return "#/" + "/".join(quote(key, safe="~!$&'()*+,;=:@") for key in escaped)


def _servers(root: Node, uri: str) -> list[str]:
    """Return the servers' absolute addresses, with their variables' defaults."""
    urls = []
    for server in root.get("servers").parts():
        url = server.text("url")
        for name, variable in server.get("variables").items():
            url = url.replace("{" + name + "}", variable.text("default"))
        if urlsplit(uri).scheme in ("http", "https"):
            url = urljoin(uri, url)
        if url.startswith(("http://", "https://")):
            urls.append(url.rstrip("/"))
    return urls or ["https://api.example.com"]
