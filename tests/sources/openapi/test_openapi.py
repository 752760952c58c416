"""API descriptions as documents, and hostile ones."""

import json
import textwrap
from itertools import pairwise

import pytest
import yaml

from kbkit.errors import SourceError
from kbkit.models import DocumentType
from kbkit.recipes import FilesSource, OpenApiSource
from kbkit.sources import Outcome, SourceContext, open_reader
from kbkit.sources.openapi import ApiDescription, is_openapi
from kbkit.sources.untrusted import load_values
from tests.sources.web.crawls import redirect

PETS = """
openapi: 3.1.0
info:
  title: Pet Store
  version: 1.2.0
  description: |
    # About
    Everything about pets. <script>alert(1)</script>

    ```
    a fence that never ends
servers:
  - url: https://{region}.pets.example/v1
    description: Live
    variables: {region: {default: eu, enum: [eu, us]}}
tags: [{name: pets, description: All **pets**.}]
security: [{key: []}, {oauth: ["pets:read"]}]
paths:
  /pets/{petId}:
    parameters:
      - $ref: '#/components/parameters/petId'
    get:
      operationId: showPet
      summary: Info for one pet
      description: "Says all | there is.\\n\\nSetext\\n======\\n\\nMore <b>words</b>."
      tags: [pets]
      parameters:
        - name: expand
          in: query
          required: true
          description: "what | to\\nexpand"
          schema: {type: array, items: {type: string, enum: [owner, tags]}}
      responses:
        200:
          description: A pet.
          headers: {X-Rate: {schema: {type: integer}, description: Calls left}}
          content:
            application/json: {schema: {$ref: '#/components/schemas/Pet'}}
            text/xml: {example: <pet/>}
        default: {$ref: '#/components/responses/Error'}
    put:
      deprecated: true
      security: []
      requestBody:
        required: true
        content:
          application/json:
            schema:
              oneOf: [{$ref: '#/components/schemas/Cat'}, {$ref: '#/components/schemas/Pet'}]
              discriminator: {propertyName: kind}
      responses: {"204": {description: Stored.}}
      callbacks:
        stored: {'{$request.body#/url}': {post: {summary: It was stored}}}
webhooks:
  petCame:
    post:
      summary: A pet came
      requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/Pet'}}}}
      responses: {"200": {description: Seen.}}
components:
  parameters:
    petId: {name: petId, in: path, required: true, schema: {type: string, format: uuid}}
  responses:
    Error: {description: What went wrong.}
  securitySchemes:
    key: {type: apiKey, in: header, name: X-Key, description: Ask us.}
    oauth:
      type: oauth2
      flows: {clientCredentials: {tokenUrl: https://pets.example/t, scopes: {"pets:read": Read}}}
  schemas:
    Pet:
      type: object
      description: An animal.
      required: [id]
      properties:
        id: {type: integer, format: int64, readOnly: true}
        name: {type: [string, "null"], maxLength: 20, description: Its name}
        parent: {$ref: '#/components/schemas/Pet'}
        children: {type: array, items: {$ref: '#/components/schemas/Pet'}}
    Cat:
      allOf:
        - $ref: '#/components/schemas/Pet'
        - {type: object, required: [lives], properties: {lives: {type: integer, default: 9}}}
"""


def read(text: str = PETS, uri: str = "https://pets.example/api.yaml") -> dict:
    return {
        document.uri: document for document in ApiDescription(load_values(text), uri).documents()
    }


def events(spec, base) -> list:
    return list(open_reader(spec).events(SourceContext(base=base)))


BASE = "https://pets.example/api.yaml"
GET = f"{BASE}#/paths/~1pets~1%7BpetId%7D/get"
PUT = f"{BASE}#/paths/~1pets~1%7BpetId%7D/put"


def test_each_endpoint_and_schema_is_a_document() -> None:
    results = read()
    schemas = f"{BASE}#/components/schemas"
    webhook = f"{BASE}#/webhooks/petCame/post"
    assert list(results) == [BASE, GET, PUT, webhook, f"{schemas}/Pet", f"{schemas}/Cat"]
    assert {document.document_type for document in results.values()} == {DocumentType.API_SPEC}
    assert results[GET].tags == ("pets",)
    assert results[GET].title == "GET /pets/{petId}: Info for one pet"
    assert results[GET].metadata == {
        "description": "Says all | there is.",
        "api": "Pet Store",
        "version": "1.2.0",
        "part": "endpoint",
        "method": "GET",
        "path": "/pets/{petId}",
        "operation_id": "showPet",
    }


PARTS = {
    GET: [
        "# GET /pets/{petId}: Info for one pet\n\n```http\nGET /pets/{petId}\n```\n",
        "Says all | there is.\n\n## Setext\n\nMore &lt;b>words&lt;/b>.",
        "| `petId` | path | string, uuid | yes |  |",
        "| `expand` | query | array of string | yes | what \\| to expand One of `owner`, `tags`. |",
        "### 200 OK\n\nA pet.\n\nHeaders:\n\n-   `X-Rate` (integer): Calls left",
        "#### `application/json`\n\n`Pet`. An animal.\n\n-   `id` (integer, int64, required)",
        "-   `name` (string or null): Its name Longest length `20`.",
        "-   `children` (array of `Pet`)",
        "#### `text/xml`\n\n```xml\n<pet/>\n```",
        "### default (any other status)\n\nWhat went wrong.",
        "One of these:\n\n-   `key` (API key in the header `X-Key`)\n"
        "-   `oauth` (OAuth 2) with `pets:read`",
        "curl -X GET 'https://eu.pets.example/v1/pets/123e4567-e89b-12d3-a456-426614174000"
        "?expand=owner' \\\n  -H 'X-Key: API_KEY'\n```",
    ],
    PUT: [
        "> **Deprecated**",
        "## Request body (required)\n\n### `application/json`\n\none of `Cat`, `Pet`",
        "One of: told apart by `kind`",
        "        -   `lives` (integer, required): Default: `9`.",
        '-H \'Content-Type: application/json\' \\\n  -d \'{\n  "name": "string"',
        "-   `stored`: `POST {$request.body#/url}`: It was stored",
        "| `petId` | path |",
    ],
    BASE: [
        "# Pet Store\n\n-   Version: 1.2.0",
        "-   `https://{region}.pets.example/v1`: Live\n    -   `region` (default `eu`, one of",
        "-   `key` (API key in the header `X-Key`): Ask us.",
        "        -   `pets:read`: Read",
        "### pets\n\nAll **pets**.\n\n-   `GET /pets/{petId}`: Info for one pet",
        "-   `PUT /pets/{petId}` (deprecated)",
        "## Webhooks\n\n-   `POST petCame`: A pet came",
        "## Schemas\n\n-   `Pet`\n-   `Cat`",
    ],
}


@pytest.mark.parametrize("uri", PARTS)
def test_documents_have_all_parts_of_their_endpoint_or_api(uri: str) -> None:
    content = read()[uri].content
    assert [part for part in PARTS[uri] if part not in content] == []
    if uri == PUT:
        assert "## Authentication" not in content  # security: [] takes the root's away
        assert '"id"' not in content  # it is read only


def test_hostile_descriptions_add_no_markup() -> None:
    from markdown_it import MarkdownIt

    content = read()[BASE].content
    assert "<script" not in content
    tokens = MarkdownIt().parse(content)
    headings = [
        token.content for opened, token in pairwise(tokens) if opened.type == "heading_open"
    ]
    assert headings[:3] == ["Pet Store", "About", "Servers"]


def test_html_descriptions_become_markdown() -> None:
    text = PETS.replace(
        "A pet.", "'<p>Returns a <code>pet</code>, see <a href=\"https://x.example/\">x</a>.</p>'"
    )
    assert "Returns a `pet`, see [x](https://x.example/)." in read(text)[GET].content


def test_openapi_3_0_and_json() -> None:
    values = yaml.safe_load(PETS)
    values["openapi"] = "3.0.3"
    del values["webhooks"]
    pet = values["components"]["schemas"]["Pet"]["properties"]
    pet["name"] = {"type": "string", "nullable": True, "minimum": 1, "exclusiveMinimum": True}
    results = read(json.dumps(values))
    assert "-   `name` (string or null): At least `1`." in results[GET].content
    assert len(results) == 5


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("swagger: '2.0'\npaths: {}", "Swagger 2.0 is not read; convert it"),
        ("openapi: 4.0.0\npaths: {}", "OpenAPI 4.0.0 is not read"),
        ("a: 1", "not an OpenAPI description"),
        ("openapi: [", "not YAML, line "),
        ("", "not an OpenAPI description"),
    ],
)
def test_other_files_are_one_clear_error(tmp_path, text, says) -> None:
    (tmp_path / "api.yaml").write_text(text)
    with pytest.raises(SourceError, match=says):
        events(OpenApiSource(path="api.yaml"), tmp_path)


def test_openapi_is_recognized() -> None:
    assert is_openapi(load_values(PETS))
    assert not is_openapi({"swagger": "2.0", "paths": {}})
    assert not is_openapi({"openapi": "3.1.0"})
    assert not is_openapi([1])


def test_references_to_other_files(tmp_path) -> None:
    (tmp_path / "api" / "parts").mkdir(parents=True)
    (tmp_path / "secret.yaml").write_text("Secret: {description: top}")
    (tmp_path / "api" / "parts" / "pet.yaml").write_text(
        "Pet: {type: object, properties: {toy: {$ref: 'toy.json#/Toy'}}}"
    )
    (tmp_path / "api" / "parts" / "toy.json").write_text('{"Toy": {"description": "A ball."}}')
    references = {
        "A": "parts/pet.yaml#/Pet",
        "B": "../secret.yaml#/Secret",
        "C": "https://other.example/x.yaml#/X",
        "D": "#/components/schemas/D",
        "E": "#/nowhere",
    }
    schemas = {name: {"$ref": target} for name, target in references.items()}
    spec = {"openapi": "3.1.0", "paths": {}, "components": {"schemas": schemas}}
    (tmp_path / "api" / "api.json").write_text(json.dumps(spec))
    results = events(OpenApiSource(path="api/api.json"), tmp_path)
    pages = {event.document.uri: event.document.content for event in results if event.document}
    assert "-   `toy` (`Toy`): A ball." in pages["api/api.json#/components/schemas/A"]
    assert "top" not in pages["api/api.json#/components/schemas/B"]
    reasons = "\n".join(event.reason for event in results if event.outcome is Outcome.SKIPPED)
    for part in (
        "leads out of the description's folder",
        "which is not fetched",
        "in a circle",
        "#/nowhere: leads nowhere",
    ):
        assert part in reasons
    # values without a file have no references to files
    bare = {d.uri: d.content for d in ApiDescription(spec, "api.json").documents()}
    assert "toy" not in bare["api.json#/components/schemas/A"]


def test_long_status_is_shown() -> None:
    responses = {"9" * 5_000: {"description": "Odd."}}
    spec = {"openapi": "3.1.0", "paths": {"/a": {"get": {"responses": responses}}}}
    assert any(
        "Odd." in document.content for document in ApiDescription(spec, "api.json").documents()
    )


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "a: " + "{a: " * 1000,
        "\n".join(" " * n + "a:" for n in range(1000)),
        "a: &a [x, x]\n"
        + "\n".join(
            f"{b}: &{b} [{', '.join(['*' + a] * 10)}]"
            for a, b in zip("abcdefghi", "bcdefghij", strict=True)
        ),
        "a: &a {x: *a}",
        "? [a, b]\n: c",
        "{" + '"a":{' * 1000,
    ],
)
def test_json_and_yaml_bombs_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"deep|more than|is not defined|key|not YAML"):
        load_values(text)


def test_yaml_is_read_as_json_values() -> None:
    text = """
    base: &base {a: 1, b: 2}
    merged: {<<: *base, b: 3}
    200: yes
    day: 2026-01-31
    quoted: "1"
    numbers: [0x10, 1e3, -2, 1_000, .5, ~, true]
    """
    assert load_values(textwrap.dedent(text)) == {
        "base": {"a": 1, "b": 2},
        "merged": {"a": 1, "b": 3},
        "200": "yes",
        "day": "2026-01-31",
        "quoted": "1",
        "numbers": [16, 1000.0, -2, "1_000", 0.5, None, True],
    }


def test_nested_variants_are_read_quickly() -> None:
    schema: dict = {"type": "string"}
    for _ in range(30):
        schema = {"oneOf": [schema] * 20}
    spec = {"openapi": "3.1.0", "paths": {}, "components": {"schemas": {"A": schema}}}
    assert len(list(ApiDescription(spec, "x").documents())) == 2


def test_openapi_by_address_with_tags_and_limit(site, tmp_path) -> None:
    site.pages["/v1/openapi.yaml"] = PETS
    url = site.url + "/v1/openapi.yaml"
    spec = OpenApiSource(url=url, allow_private=True, tags=("ours",), limit=2)
    results = events(spec, tmp_path)
    assert [event.uri for event in results] == [url, url + GET.removeprefix(BASE)]
    assert results[1].document.tags == ("ours", "pets")


@pytest.mark.parametrize("path", ["/missing.yaml", "/private.yaml", "/moved.yaml"])
def test_unreadable_address_is_an_error(site, tmp_path, path) -> None:
    site.pages["/robots.txt"] = "User-agent: *\nDisallow: /private.yaml"
    site.pages["/private.yaml"] = PETS
    site.pages["/moved.yaml"] = redirect("/private.yaml")
    with pytest.raises(SourceError, match=r"404|robots"):
        events(OpenApiSource(url=site.url + path, allow_private=True), tmp_path)


def test_private_addresses_are_refused(site, tmp_path) -> None:
    site.pages["/api.yaml"] = PETS
    with pytest.raises(SourceError, match="loopback"):
        events(OpenApiSource(url=site.url + "/api.yaml"), tmp_path)
    assert site.paths == []


@pytest.mark.parametrize("name", ["api.yaml", "api.json"])
def test_files_source_recognizes_openapi(tmp_path, name) -> None:
    text = PETS if name.endswith("yaml") else json.dumps(load_values(PETS))
    (tmp_path / name).write_text(text)
    results, expected = (
        [(event.uri, event.document.content, event.document.document_type) for event in read]
        for read in (events(kind(path=name), tmp_path) for kind in (FilesSource, OpenApiSource))
    )
    assert results == expected
    assert {kind for _, _, kind in results} == {DocumentType.API_SPEC}
