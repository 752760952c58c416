"""The source ``openapi``: one document for each endpoint and schema, and an overview.

A document's URI is the description's with the JSON pointer of the part (RFC 6901):
``https://example.org/api.yaml#/paths/~1pets/get``. The overview has no pointer.
"""

import json
import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import quote, urljoin, urlsplit

from kbkit.errors import SourceError
from kbkit.models import DocumentType, License, SourceDocument
from kbkit.recipes import OpenApiSource
from kbkit.sources import DiskPlace, Outcome, SourceContext, SourceEvent
from kbkit.sources.markdown.lines import inline_markdown
from kbkit.sources.openapi import operations as endpoints
from kbkit.sources.openapi.schemas import Node, References, Schemas, decode_description, read_text
from kbkit.sources.page_templates import fill_template
from kbkit.sources.untrusted import load_values
from kbkit.sources.web.pages import open_robots
from kbkit.sources.web.urls import canonical
from kbkit.text.markdown.structure import plain_text


def read_description(spec: OpenApiSource, context: SourceContext) -> Iterator[SourceEvent]:
    """Yield the documents of an API description, then a skip event for each broken reference."""
    path: Path | None = None
    if spec.url:
        # the requested address, even after a redirect to another release
        uri = canonical(spec.url) or spec.url
    else:
        path = context.base / Path(spec.path or "").expanduser()
        uri = (context.place or DiskPlace.of(spec.path or "", context.base)).uri(path)
    try:
        values = load_values(read_text(path) if path else _fetch(spec, context))
    except ValueError as error:
        raise SourceError(f"{uri}: {error}") from None
    description = ApiDescription(values, uri, path)
    for yielded, document in enumerate(description.documents()):
        if context.stop() or yielded >= spec.limit:
            return
        yield SourceEvent(document.uri, Outcome.FETCHED, document)
    for problem in description.problems():
        yield SourceEvent(uri, Outcome.SKIPPED, reason=problem)


def _fetch(spec: OpenApiSource, context: SourceContext) -> str:
    # unconditional: an unchanged description must still yield its documents
    with closing(open_robots(spec, context)) as robots:
        response = robots.get(spec.url or "")
    if response.outcome is not Outcome.FETCHED:
        raise ValueError(response.reason)
    return decode_description(response.body, response.charset)


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
        return "not an OpenAPI description (it has no keys openapi and paths)"
    version = str(values["openapi"])
    if not re.match(r"3\.\d", version):
        return f"OpenAPI {version[:10]} is not read; 3.0 and 3.1 are"
    return ""


class ApiDescription:
    """One OpenAPI description."""

    def __init__(self, values: Any, uri: str, path: Path | None = None) -> None:
        if reason := version_problem(values):
            raise SourceError(f"{uri}: {reason}")
        self._uri = uri.partition("#")[0]
        self._references = References(values, path)
        self._root = self._references.resolve(values)
        self._info = self._root.get("info")
        self._name = self._info.text("title") or uri.rpartition("/")[2] or "API"
        self._schemas = Schemas()
        servers = _servers(self._root, self._uri)
        self._operations = endpoints.Operations(self._root, self._schemas, servers)

    def problems(self) -> list[str]:
        """Return broken references; complete after all documents."""
        return sorted(set(self._references.problems.values()))

    def documents(self) -> Iterator[SourceDocument]:
        """Yield the overview, then the endpoints, the webhooks and the schemas."""
        operations = list(self._operations.iter_operations())
        summary = self._info.text("summary") or self._info.members.get("description")
        page = self._overview(operations)
        yield self._document("", self._name, page, summary, part="overview")
        for operation in operations:
            self._schemas.begin()
            group = "webhooks" if operation.webhook else "paths"
            yield self._document(
                _pointer(group, operation.path, operation.method),
                operation.title,
                self._operations.page(operation),
                operation.node.members.get("description") or operation.summary,
                operation.tags,
                part="webhook" if operation.webhook else "endpoint",
                method=operation.method.upper(),
                path=operation.path,
                operation_id=operation.name,
                deprecated=operation.deprecated,
            )
        for name, schema in self._root.get("components").get("schemas").items():
            self._schemas.begin()
            page = self._schema_page(name, schema)
            description = schema.members.get("description")
            pointer = _pointer("components", "schemas", name)
            yield self._document(pointer, f"{name} schema", page, description, part="schema")

    def _document(
        self,
        pointer: str,
        title: str,
        content: str,
        description: Any,
        tags: tuple[str, ...] = (),
        **extra: Any,
    ) -> SourceDocument:
        license = self._info.get("license")
        license_name = license.text("identifier") or license.text("name")
        text = description.strip() if isinstance(description, str) else ""
        metadata = {
            "api": self._name,
            "version": self._info.text("version"),
            **License.stated(license_name, license.text("url")).to_metadata(),
            **extra,
            "description": plain_text(inline_markdown(text.partition("\n\n")[0])),
        }
        return SourceDocument(
            self._uri + pointer,
            " ".join(title.split())[:500],
            content,
            DocumentType.API_SPEC,
            tags,
            {key: value for key, value in metadata.items() if value},
        )

    def _overview(self, operations: list[endpoints.Operation]) -> str:
        info = self._info
        facts = [("Version", info.text("version"))]
        facts.append(("Description format", f"OpenAPI {self._root.text('openapi')}"))
        for label in ("Contact", "License"):
            fields = map(info.get(label.lower()).text, ("name", "identifier", "email", "url"))
            facts.append((label, ", ".join(filter(None, fields))))
        facts.append(("Terms of service", info.text("termsOfService")))
        described = {tag.text("name"): tag.block(4) for tag in self._root.get("tags").parts()}
        operation_tags = chain(*(operation.tags for operation in operations))
        return fill_template(
            "api.md.j2",
            name=self._name,
            facts=facts,
            info=info,
            root=self._root,
            operations=operations,
            described=described,
            tags=list(filter(None, dict.fromkeys([*described, *operation_tags]))),
            schemes=self._operations.schemes,
            how=endpoints.how_of,
            addresses=endpoints.addresses_of,
        )

    def _schema_page(self, name: str, schema: Node) -> str:
        ref = "#/components/schemas/" + name.replace("~", "~0").replace("/", "~1")
        excluded = ("description", "title")
        remaining = {key: inner for key, inner in schema.members.items() if key not in excluded}
        example = self._schemas.example(schema)
        example_json = json.dumps(example, ensure_ascii=False, indent=2)
        return fill_template(
            "schema.md.j2",
            name=name,
            schema=schema,
            kind=self._schemas.summary(replace(schema, value=remaining, name="")),
            fields=self._schemas.lines(replace(schema, ref=ref)),
            example=None if example is None else example_json[: endpoints.MAX_EXAMPLE_LENGTH],
        )


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
