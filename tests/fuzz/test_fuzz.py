"""Random input ends in a result or in one clear error.

`make test` tries a few cases of each; `make soak` 100,000 (KBKIT_HYPOTHESIS_PROFILE=soak), also of
chunks (tests/ingest/test_chunking.py) and of queries (tests/retrieval/test_bad_input.py).
"""

from __future__ import annotations

import json
import os
import re
import zipfile
from functools import lru_cache
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import kbkit
from kbkit.errors import KbkitError
from kbkit.export.pages.paths import PATH_BYTES, assign_paths, safe_name
from kbkit.files.paths import fault, parts_of
from kbkit.recipes import CrawlSource, FilesSource, Recipe, parse_recipe, parse_source
from kbkit.server.app import application
from kbkit.sources.html.site_extractor import ExtractTask, extract_page
from kbkit.sources.openapi import ApiDescription
from tests.bundles.test_hostile import edited, packed

CASES = settings().max_examples if "KBKIT_HYPOTHESIS_PROFILE" in os.environ else 15
fuzzed = settings(
    max_examples=CASES, deadline=None, suppress_health_check=list(HealthCheck), database=None
)


def attempt(call, *arguments, **options):
    """The result of a call, and the message of its KbkitError; any other error is a fault."""
    try:
        return call(*arguments, **options), ""
    except KbkitError as error:
        message = str(error)
    assert message
    return None, message


odd = st.text(
    st.sampled_from(
        "abZ019 \t\n\r\0\x1b\x85\u202e\u2028é日\ud800😀<>&\"'`*_#[](){}|\\/.:;?=-%@!$^~"
    ),
    max_size=30,
)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    odd,
    st.just("9" * 5_000),
    st.sampled_from(["https://h/", "2026-02-31", "1:60", "0x", "${A}", "../a", "..", "C:\\"]),
)


def values(keys: st.SearchStrategy[str]) -> st.SearchStrategy[object]:
    """JSON values whose objects have these keys."""
    return st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=5),
        max_leaves=12,
    )


# --- recipes ------------------------------------------------------------------------------------

keys_of_recipes = st.sampled_from([*Recipe.model_fields, *CrawlSource.model_fields, "<<", "odd"])
YAML_SIGNS = [
    *("&a [*a]", "*a", "&a {b: 1}", "{<<: *a}", "!!binary x", "!!bool x", "|", "!!timestamp x"),
    *("? [a]", "---", "...", "%YAML 9.9", "!!set {a}"),
]
yaml_lines = st.builds(
    lambda indent, key, value: " " * indent + key + value,
    st.integers(0, 6),
    st.one_of(st.just(""), st.just("- "), keys_of_recipes.map("{}: ".format)),
    st.one_of(
        odd,
        values(keys_of_recipes).map(lambda value: json.dumps(value, ensure_ascii=False)),
        st.sampled_from(YAML_SIGNS),
    ),
)
yaml_texts = st.lists(yaml_lines, max_size=12).map("\n".join)


@given(text=yaml_texts | values(keys_of_recipes).map(json.dumps))
@fuzzed
def test_recipes(text):
    for each in (text, f"name: x\nsources: [{{type: files, path: a}}]\n{text}"):
        recipe, message = attempt(parse_recipe, each, Path("r.yaml"))
        if recipe is None:
            assert message.startswith("r.yaml:")
        else:
            recipe.model_dump_json()


keys_of_sources = st.sampled_from([*CrawlSource.model_fields, *FilesSource.model_fields, "odd"])
kinds = ["crawl", "page", "mirror", "files", "jsonl", "openapi", "package", "plugin", "odd"]


@given(
    body=st.dictionaries(keys_of_sources, values(keys_of_sources), max_size=6),
    kind=st.sampled_from(kinds),
)
@fuzzed
def test_sources(body, kind):
    attempt(parse_source, {**body, "type": kind})


# --- documents ----------------------------------------------------------------------------------

TAGS = """
html head body main article p div span table tr td th ul li dl dt dd pre code a img svg math h1 h2
h7 template select option iframe form input textarea title base meta blockquote
"""
tags = st.sampled_from(TAGS.split())
pieces = st.one_of(
    odd,
    st.just("Some words of a sentence that says something, and goes on for a while. "),
    tags.map("<{}>".format),
    tags.map("</{}>".format),
    st.builds(
        "<{} {}={}>".format,
        tags,
        st.sampled_from(["id", "class", "href", "src", "rowspan", "colspan", "style", "charset"]),
        st.one_of(odd, st.sampled_from(["0", "-1", "99999999", "//[", "javascript:1", "main"])),
    ),
    st.sampled_from(["<!--", "-->", "<![CDATA[", "]]>", "<!DOCTYPE html>", "<?xml", "&#0;"]),
)


@given(parts=st.lists(pieces, max_size=25), charset=st.sampled_from(["", "utf-8", "utf-16", "odd"]))
@fuzzed
def test_pages(parts, charset):
    body = "".join(parts).encode("utf-8", "surrogatepass")
    page = extract_page(ExtractTask("https://h/a/b.html", body, charset, (), measure=True))
    (page.title + page.content).encode("utf-8")
    assert page.content.strip() or page.reason


KEYS_OF_APIS = """
openapi info title version paths /a /b/{c} get post parameters name in schema type properties items
$ref allOf oneOf anyOf not enum example examples default required requestBody content
application/json responses 200 description components schemas A securitySchemes security servers
url variables tags summary operationId headers discriminator mapping const
"""
keys_of_apis = st.sampled_from(KEYS_OF_APIS.split())
schemas = values(keys_of_apis) | st.sampled_from(
    [{"$ref": target} for target in ("#/components/schemas/A", "#/", "#", 1, "x#/y")]
)
apis = st.fixed_dictionaries(
    {"openapi": st.sampled_from(["3.0.0", "3.1.0"])},
    optional={
        "info": schemas,
        "servers": st.lists(schemas, max_size=2) | schemas,
        "paths": schemas
        | st.dictionaries(
            st.sampled_from(["/a", "/b/{c}", "odd"]),
            schemas
            | st.dictionaries(
                st.sampled_from(["get", "post", "parameters", "odd"]),
                schemas | st.dictionaries(keys_of_apis, schemas, max_size=4),
                max_size=3,
            ),
            max_size=3,
        ),
        "components": schemas
        | st.dictionaries(
            st.sampled_from(["schemas", "securitySchemes", "parameters", "responses"]),
            schemas | st.dictionaries(st.sampled_from(["A", "B"]), schemas, max_size=2),
            max_size=3,
        ),
        "security": schemas,
        "tags": schemas,
    },
)


@given(description=apis)
@fuzzed
def test_api_descriptions(description):
    read, _ = attempt(lambda: list(ApiDescription(description, "https://h/api.json").documents()))
    assert all(isinstance(document.content, str) for document in read or ())


# --- names and filters --------------------------------------------------------------------------


@given(names=st.lists(odd, max_size=6))
@fuzzed
def test_paths(names):
    path = "/".join(names)
    parts, message = attempt(parts_of, path)
    if parts is None:
        assert message.isprintable()
    else:
        assert not any(fault(part) or part in ("", ".", "..") for part in parts)
        assert parts_of("/".join(parts)) == parts
    usable = [name.encode("utf-8", "replace").decode() for name in names]
    uris = {f"https://h/{name}" for name in usable} | {f"text:{name}" for name in usable}
    paths = assign_paths(sorted(uris), "pages")
    assert len(set(paths.values())) == len(uris)
    for name in paths.values():
        assert not name.startswith("/")
        assert ".." not in name.split("/")
        assert "\\" not in name
        assert len(name.encode()) <= PATH_BYTES + 40
    for name in usable:
        assert safe_name(name) not in ("", ".", "..")


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    with kbkit.open(tmp_path_factory.mktemp("fuzz") / "kb") as opened:
        notes = opened.create("notes")
        notes.add("Tea", "# Tea\n\nGreen tea steeps for two minutes.", source="x:tea")
        notes.add("Bread", "# Bread\n\nBread is baked for an hour.", source="x:bread")
        yield opened


# --- bundles and requests -----------------------------------------------------------------------

tables = st.sampled_from(
    ["knowledge_bases", "documents", "chunks", "vectors", "ratings", "sources", "manifest"]
)


@pytest.fixture(scope="module")
def members(workspace):
    """The members of a bundle of the workspace, with a rating and a source."""
    notes, path = workspace["notes"], workspace.path.with_name("good.zip")
    notes.rate(notes.documents["x:tea"].id, 4, rater="ann")
    notes.sources.add(FilesSource(path="tea.md"))
    workspace.bundle(path, kbs=["notes"])
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture(scope="module")
def empty(tmp_path_factory):
    with kbkit.open(tmp_path_factory.mktemp("restored") / "kb") as opened:
        yield opened


@given(data=st.data(), table=tables, value=values(odd))
@fuzzed
def test_bundles(members, empty, data, table, value):
    """Bytes of a bundle are changed, or a row together with its digests."""
    path = empty.path.with_name("bundle.zip")
    if data.draw(st.booleans()):
        changed = bytearray(packed(members))
        for _ in range(data.draw(st.integers(1, 4))):
            changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
        path.write_bytes(changed)
    elif table == "manifest":
        manifest = json.loads(members["manifest.json"])
        manifest[data.draw(st.sampled_from(sorted(manifest)))] = value
        path.write_bytes(packed(members, json.dumps(manifest).encode()))
    else:

        def change(rows):
            row = data.draw(st.sampled_from(rows))
            row[data.draw(st.sampled_from(sorted(row)))] = value

        path.write_bytes(packed(edited(members, table, change)))
    restored, message = attempt(empty.restore, path)
    if restored is None:
        assert message.isprintable()
    for name in empty:
        assert restored is not None
        attempt(empty.search, "tea", kbs=[name])
        empty.delete(name, forever=True)


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with kbkit.open(tmp_path_factory.mktemp("served") / "kb") as opened:
        opened.create("notes").add("Tea", "Green tea steeps for two minutes.", source="x:tea")
        opened.files.write("a.md", "# A\n")
        opened.entries.create("Brew tea", slug="brew", prompt="Boil water.")
        app = application(opened)
        with TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False) as client:
            yield client


PLACES = {"name": "notes", "document": "x:tea", "path": "a.md", "slug": "brew"}


@lru_cache
def operations(app):
    """Method, path and fields of requests with an immediate response, except for new bases."""
    description, requests = app.openapi(), []
    for path, operation in description["paths"].items():
        for method, about in operation.items():
            shape = about.get("requestBody", {}).get("content", {}).get("application/json", {})
            if shape and "202" not in about["responses"] and path != "/api/knowledge/bases":
                name = shape["schema"].get("$ref", "").rpartition("/")[2]
                schema = description["components"]["schemas"].get(name, {})
                fields = schema.get("properties", {"odd": {}})
                where = re.sub(r"{(\w+)}", lambda part: PLACES.get(part[1], "none"), path)
                requests.append((method, where, (*fields, "odd")))
    return requests


@given(data=st.data())
@fuzzed
def test_request_bodies(client, data):
    method, path, fields = data.draw(st.sampled_from(operations(client.app)))
    body = data.draw(
        st.dictionaries(st.sampled_from(fields), values(st.sampled_from(fields)), max_size=5)
        | values(odd)
    )
    content = json.dumps(body).encode("utf-8", "surrogatepass")
    headers = {"Content-Type": "application/json"}
    response = client.request(method, path, content=content, headers=headers)
    assert response.status_code < 500, (method, path, content, response.text)
    if response.status_code >= 400:
        assert response.json()["detail"]
