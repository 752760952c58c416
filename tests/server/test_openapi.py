"""The OpenAPI document is complete and exact."""

import json
import re
import socket
import subprocess
import sys
from http.client import HTTPConnection
from pathlib import Path

import httpx
import pytest
from fastapi.testclient import TestClient

import kbkit
from kbkit.access import Tokens
from kbkit.server import ServerSettings, running
from kbkit.server.app import application

ROOT = Path(__file__).parents[2]
EDGES = ("--phases", "coverage", "--generation-deterministic")
SOME = "/documents$"
ALWAYS = ("--no-color", "--suppress-health-check", "all", "--request-timeout", "120")
DRAWN = ("--generation-database", "none", "--max-examples", "100", "--max-time", "1200")


@pytest.mark.parametrize(
    "options",
    [
        pytest.param((*EDGES, "--include-path-regex", SOME), id="edges of some operations"),
        pytest.param(EDGES, id="edges of all", marks=pytest.mark.soak),
        pytest.param(DRAWN, id="random", marks=pytest.mark.soak),
    ],
)
@pytest.mark.timeout(1800)  # some 12,000 requests, one after the other
def test_schemathesis_finds_nothing(options, tmp_path):
    with kbkit.open(tmp_path / "kb") as workspace:
        workspace.create("drinks").add("Tea", "# Tea\n\nSteep tea for two minutes.")
        workspace.files.write("notes/today.md", "# Today\n\nTea.")
        workspace.entries.create("Brew tea", slug="brew-tea", prompt="Boil water.")
        token = Tokens(workspace).create("all", scope="admin").token
        with running(workspace, ServerSettings(port=0, rate=0)) as url:
            command = Path(sys.executable).with_name("st")
            header = f"Authorization: Bearer {token}"
            done = subprocess.run(
                [command, "run", f"{url}/openapi.json", "-H", header, *ALWAYS, *options],
                cwd=ROOT,
                capture_output=True,
                text=True,
                check=False,
            )
    print(done.stdout)
    assert done.returncode == 0, done.stdout[-20_000:]
    assert "Server error" not in done.stdout
    assert "SUMMARY" in done.stdout


def test_operation_names_suit_generated_clients(tmp_path):
    with kbkit.open(tmp_path / "kb") as workspace:
        paths = application(workspace).openapi()["paths"]
    names = [each["operationId"] for operations in paths.values() for each in operations.values()]
    assert len(names) == len(set(names)) > 100
    assert {"search_knowledge", "read_file", "create_entry", "list_bases"} <= set(names)
    assert not [name for name in names if not re.fullmatch(r"[a-z]+(_[a-z]+)+", name)]
    assert max(map(len, names)) <= 30
    for path, operations in paths.items():
        for method, operation in operations.items():
            if "cursor" in {each["name"] for each in operation.get("parameters", ())}:
                assert "404" in operation["responses"], (method, path)  # of no answer


@pytest.mark.slow
def test_body_without_required_fields_is_optional(tmp_path):
    with kbkit.open(tmp_path / "kb") as workspace:
        kb = workspace.create("a")
        kb.add("Tea", "Steep tea.")
        chunk = next(iter(kb.chunks)).id
        app = application(workspace)
        paths, shapes = app.openapi()["paths"], app.openapi()["components"]["schemas"]
        found = []
        for path, operations in paths.items():
            body = operations.get("post", {}).get("requestBody", {})
            shape = body.get("content", {}).get("application/json", {}).get("schema", {})
            shape = shapes[shape["$ref"].rpartition("/")[2]] if "$ref" in shape else shape
            if body and "properties" in shape and not shape.get("required"):
                found.append((path, body.get("required", False)))
        with TestClient(app, base_url="http://127.0.0.1") as client:
            for path, required in found:
                assert not required, path
                without = client.post(path)  # there is no {name}: nothing is done
                assert without.status_code in ((404,) if "{" in path else (200, 404)), without.text
                null = {"content": "null", "headers": {"Content-Type": "application/json"}}
                named = path.replace("{name}", "a").replace("{chunk}", chunk)
                assert client.post(named, **null).status_code == 422, path
    names = "refresh improve annotate exports expansions undelete doctor"
    assert {path.rpartition("/")[2] for path, _ in found} >= set(names.split())


CROSSED = {"chunking": {"strategy": "sentence", "size": 200, "overlap": 150}}
PRIVATE = {"type": "openapi", "url": "https://x.org/", "allow_private": ["here"]}
ASKED = [{"question": "tea", "relevant": ["Tea"]}]
SELF = "file:notes/today.md"
FOUND = [
    # Schemathesis found these: valid by the document, and once answered otherwise
    (409, "POST", "search", {"query": "tea", "kb": "drinks", "kbs": ["drinks"]}),
    (200, "POST", "search", {"query": "tea", "limit": 3.0}),
    (200, "POST", "search", {"query": "tea", "filters": {"page": 7.0, "min_rating": 2.0}}),
    (200, "POST", "search", {"query": "tea", "filters": {"page": [7.0]}}),
    (409, "POST", "context", {"query": "tea", "max_tokens": 100.0}),
    (200, "POST", "context", {"query": "tea", "limit": 3.0, "max_tokens": 2000.0}),
    (200, "POST", "ask", {"query": "tea", "limit": 3.0}),
    (409, "POST", "documents", {"kb": "entries", "title": "Tea", "content": "Tea."}),
    (409, "POST", "bases", {"name": "new", "spec": {"language": "klingon"}}),
    (409, "POST", "bases", {"name": "new", "embedding": "nothing"}),
    (409, "POST", "bases", {"name": "new", "embedding": {"type": "plugin", "name": "none"}}),
    (409, "POST", "bases", {"name": "new", "spec": CROSSED}),
    (409, "POST", "bases", {"name": "new", "embedding": {"type": "onnx"}}),
    (409, "POST", "bases/drinks/refresh", {}),
    (409, "POST", "bases/drinks/improve", {"embedding": ""}),
    (403, "POST", "bases/drinks/ingest", {"sources": [{"type": "files", "path": "x"}]}),
    (409, "POST", "import/url", {"kb": "drinks", "url": "https://x.org/", "limit": 1}),
    (403, "POST", "import/url", {"kb": "drinks", "url": "http://0?"}),
    (409, "POST", "import/openapi", {"kb": "drinks"}),
    (409, "POST", "bases/drinks/ingest", {"sources": [PRIVATE]}),
    (409, "POST", "bases/drinks/sources", {"sources": [PRIVATE]}),
    (409, "POST", "bases/drinks/evaluate", {}),
    (409, "POST", "bases/drinks/tune", {}),
    (409, "POST", "bases/drinks/evaluate", {"judgements": {"tea": {"gone": 2}}}),
    (422, "POST", "bases/drinks/evaluate", {"judgements": {"tea": {"gone": True}}}),
    (409, "POST", "bases/drinks/evaluate", {"judgements": {"tea": {"gone": 2.0}}}),
    (422, "POST", "bases/drinks/evaluate", {"judgements": {" ": {"gone": 2}}}),
    (422, "POST", "bases/drinks/pool", {"query": "tea", "seed": 2**32}),
    (200, "POST", "bases/drinks/pool", {"query": "tea", "seed": 2**32 - 1}),
    (409, "POST", "bases/drinks/expansions", {}),
    (409, "POST", "graph/relationships", {"name": "x", "source": SELF, "target": SELF}),
    (422, "POST", "bases/drinks/evaluate", {"mode": "none", "questions": ASKED, "wait": False}),
    (422, "POST", "bases/drinks/evaluate", {"k": 101, "questions": ASKED, "wait": False}),
    (422, "POST", "graph/entities", {"name": "x", "aliases": ["y"] * 1_001}),
    (409, "POST", "bases/drinks/exports", {"pages_only": True, "standalone": True}),
    (409, "POST", "bases/drinks/exports", {"publish": True, "build": False}),
]


def test_requests_that_schemathesis_found(tmp_path):
    with kbkit.open(tmp_path / "kb") as workspace:
        kb = workspace.create("drinks")
        kb.add("Tea", "# Tea\n\nSteep tea for two minutes.")
        workspace.entries.create("Brew tea", slug="brew-tea")
        workspace.files.write("notes/today.md", "# Today")
        chunk = next(iter(kb.chunks)).id
        with running(workspace, ServerSettings(port=0, rate=0)) as url:
            at = f"{url}/api/knowledge"
            for status, method, path, body in FOUND:
                answer = httpx.request(method, f"{at}/{path}", json=body, timeout=30)
                assert answer.status_code == status, (path, body, answer.text)
            rated = httpx.post(f"{at}/chunks/{chunk}/rate", json={"score": 4.0})
            assert (rated.status_code, rated.json()["score"]) == (201, 4)
            json_type = {"Content-Type": "application/json"}
            answer = httpx.post(f"{url}/api/entries/learn", content=b"\xff", headers=json_type)
            assert answer.status_code in (400, 422), answer.text
            address = ("127.0.0.1", int(url.rpartition(":")[2]))
            peer = HTTPConnection(*address, timeout=20)
            peer.request("GET", "/api/knowledge/documents?kb=tea" + "&tags=x" * 15_000)
            answer = peer.getresponse()
            assert answer.status in (400, 431)
            assert answer.headers["Content-Type"] in (None, "application/problem+json")
            peer.close()
            with socket.create_connection(address, 20) as peer:
                peer.sendall(b"GET / nothing\r\n\r\n")
                text = peer.makefile("rb").read().decode()
            assert text.startswith("HTTP/1.1 400 ")
            assert "application/problem+json" in text
            assert json.loads(text.partition("\r\n\r\n")[2])["status"] == 400
            document = httpx.get(f"{url}/openapi.json", timeout=60).json()
    shapes = document["components"]["schemas"]
    sources = shapes["NewSources"]["properties"]["sources"]["items"]["discriminator"]["mapping"]
    assert "crawl" in sources
    assert "type" in shapes["PluginEmbedding"]["required"]
    assert "type" not in shapes["RulesAnnotation"].get("required", ())
    names = shapes["PluginAnnotation"]["properties"]["names"]["items"]["anyOf"]
    assert {each.get("type") for each in names} == {None, "string"}
    filters = shapes["SearchBody"]["properties"]["filters"]["anyOf"][0]["properties"]
    assert filters["min_probability"]["anyOf"][0]["maximum"] == 1
    parameters = document["paths"]["/api/knowledge/graph/entities"]["get"]["parameters"]
    (types,) = [each["schema"] for each in parameters if each["name"] == "type"]
    assert types["type"] == "array"
    form = shapes["Body_import_files"]["properties"]
    assert not any({"type": "null"} in field.get("anyOf", ()) for field in form.values())
