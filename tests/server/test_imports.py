"""Imports of pages, sites, files and descriptions over HTTP."""

import json
import select
import socket
from urllib.parse import quote

import pytest
from fastapi.testclient import TestClient

import kbkit
from kbkit.runtime.web_server import serve_folder
from kbkit.server.app import application
from tests.server.requests import bearer, problem

AT = "/api/knowledge"
PRIVATE = """
127.0.0.1 localhost 2130706433 0x7f.1 [::1] [::ffff:7f00:1] 10.0.0.1 0.0.0.0 169.254.169.254
[fe80::1] 100.100.100.200
"""
API = {
    "openapi": "3.0.0",
    "info": {"title": "Tea", "version": "1"},
    "paths": {"/brew": {"get": {"summary": "Brew", "responses": {"200": {"description": "Ok"}}}}},
}


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    with kbkit.open(tmp_path_factory.mktemp("imports") / "kb") as opened:
        opened.create("tea")
        yield opened


@pytest.fixture(scope="module")
def client(workspace):
    with TestClient(application(workspace), base_url="http://127.0.0.1") as client:
        yield client


def upload(client, *files, **form):
    sent = [("files", file) for file in files]
    return client.post(f"{AT}/import/file", data={"kb": "tea", **form}, files=sent)


@pytest.fixture(scope="module")
def web(tmp_path_factory):
    site = tmp_path_factory.mktemp("web")
    page = "<html><body><main><h1>{0}</h1><p>{0} steeps. <a href='/{1}'>on</a></p></main></body>"
    (site / "index.html").write_text(page.format("Tea", "mate.html"))
    (site / "mate.html").write_text(page.format("Mate", ""))
    with serve_folder(site) as url:
        yield url.rstrip("/")


def test_imported_page_is_searchable(client, web):
    body = {"kb": "tea", "url": f"{web}/mate.html", "tags": ["green"], "allow_private": True}
    imported = client.post(f"{AT}/import/url", json=body)
    assert imported.status_code == 200
    (document,) = imported.json()["documents"]
    assert (document["title"], document["tags"]) == ("Mate", ["green"])
    assert imported.json()["chunks"] == document["chunks"] == 1
    found = client.post(f"{AT}/search", json={"query": "mate", "kb": "tea"}).json()["hits"]
    assert found[0]["document_id"] == document["id"]
    missing = client.post(f"{AT}/import/url", json={**body, "url": f"{web}/none.html"})
    problem(missing, 409, "SourceError", "404")


def test_crawl_is_a_job(client, web):
    body = {"kb": "tea", "url": f"{web}/", "crawl": True, "allow_private": True}
    begun = client.post(f"{AT}/import/url", json=body)
    assert begun.status_code == 202
    job = client.get(begun.headers["location"], params={"wait": 20}).json()
    assert (job["state"], job["kbs"]) == ("done", ["tea"])
    assert {one["title"] for one in job["result"]["documents"]} == {"Tea", "Mate"}


def test_import_with_an_idempotency_key_runs_once(client):
    body = {"kb": "tea", "description": API, "name": "once"}
    key = {"Idempotency-Key": "one"}
    first = client.post(f"{AT}/import/openapi", json=body, headers=key)
    assert {one["uri"] for one in first.json()["documents"]} == {
        "once.json",
        "once.json#/paths/~1brew/get",
    }
    again = client.post(f"{AT}/import/openapi", json=body, headers=key)
    assert (again.json(), again.headers["idempotency-replayed"]) == (first.json(), "true")
    other = client.post(f"{AT}/import/openapi", json={**body, "name": "other"}, headers=key)
    problem(other, 409, "ReusedKeyError", "another request")


def test_uploads_are_read_and_deleted(client, workspace):
    files = ("docs/a.md", b"# Alpha\n\nAlpha."), ("b.md", b"# Beta\n\nBeta.")
    documents = upload(client, *files, tags=["x", "y"]).json()["documents"]
    tags = {document["uri"]: document["tags"] for document in documents}
    assert tags == {"docs/a.md": ["x", "y"], "b.md": ["x", "y"]}
    assert not [*workspace.path.glob("uploads/*")]


def test_upload_while_another_one_is_deleted(client, workspace):
    uploads = workspace.path / "uploads"
    uploads.mkdir(exist_ok=True)
    dangling = uploads / "dangling"
    dangling.symlink_to("missing")  # listed, but absent when it is examined
    answer = upload(client, ("c.md", b"# Gamma\n\nGamma."))
    dangling.unlink()
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize("name", ["../a.md", "/etc/a.md", "a/../../b.md", ".git/config", "con"])
def test_upload_name_cannot_leave_its_folder(client, workspace, name):
    answered = upload(client, (name, b"# Alpha"))
    assert answered.status_code in (400, 404)
    assert answered.json()["error"] in ("PathOutsideError", "InvalidPathError")
    assert not [*workspace.path.glob("uploads/*")]


def test_unreadable_uploads_are_refused(client):
    for name, data in (("a.exe", b"MZ"), ("a.zip", b"PK\x03\x04"), ("a.pdf", b"no PDF")):
        problem(upload(client, (name, data)), 409, "SourceError", name)
    answered = upload(client, ("a.md", b"# A"), ("a.md", b"# B"))
    problem(answered, 409, "ImpossibleError", "the same name")
    empty = client.post(f"{AT}/import/openapi", json={"kb": "tea", "description": "hello"})
    problem(empty, 409, "SourceError", "not an OpenAPI description")


@pytest.mark.parametrize(
    "source",
    [
        {"type": "files", "path": "/etc"},
        {"type": "mirror", "path": "/srv", "base_url": "https://x.org/"},
        {"type": "jsonl", "path": "x.jsonl"},
        {"type": "openapi", "path": "/etc/api.json"},
    ],
)
def test_sources_cannot_name_paths_of_the_server(client, source):
    for path in ("ingest", "sources"):
        answered = client.post(f"{AT}/bases/tea/{path}", json={"sources": [source]})
        problem(answered, 403, "ForbiddenError", "names a path")
    if source["path"].startswith("/"):
        answered = upload(client, ("a.md", b"# A"), source=json.dumps(source))
        assert answered.json()["error"] == "PathOutsideError"


def test_source_has_an_address_and_a_version(workspace, client, web, tokens):
    workspace["tea"].sources.add(
        [{"type": "page", "url": f"{web}/?a=b&c"}, {"type": "files", "path": "/srv/secret/docs"}]
    )
    listed = client.get(f"{AT}/bases/tea/sources", params={"limit": 1}).json()
    assert (len(listed["data"]), listed["next_cursor"] is not None) == (1, True)
    unknown = client.get(f"{AT}/bases/tea/sources", params={"source": "x"})
    problem(unknown, 400, "ArgumentError", "source")
    found = client.get(f"{AT}/bases/tea/sources/{quote(f'{web}/?a=b&c', safe='')}")
    page = found.json()
    assert (found.headers["etag"], page["location"]) == (f'"{page["version"]}"', f"{web}/?a=b&c")
    at = f"{AT}/bases/tea/sources/{page['id']}"
    stale = {"If-Match": found.headers["etag"]}
    changed = client.patch(at, json={"options": {"tags": ["x"]}}, headers=stale)
    assert (changed.status_code, changed.json()["options"]["tags"]) == (200, ["x"])
    assert changed.headers["etag"] == client.get(at).headers["etag"] != found.headers["etag"]
    for answered in (
        client.patch(at, json={"options": {"tags": []}}, headers=stale),
        client.patch(at, json={"enabled": False}, headers=stale),
        client.delete(at, headers=stale),
    ):
        problem(answered, 412, "VersionConflictError", "was changed since")
    both = {"enabled": False, "options": {"tags": None, "nothing": None, "if_match": None}}
    now = {"If-Match": changed.headers["etag"]}
    switched = client.patch(at, json=both, headers=now)
    assert switched.status_code == 200
    assert (switched.json()["enabled"], switched.json()["options"]["tags"]) == (False, [])
    token, info = tokens.create("reader")
    hidden = client.get(f"{AT}/bases/tea/sources/docs", headers=bearer(token))
    tokens.revoke(info.id)
    assert hidden.status_code == 200
    assert "/srv" not in hidden.text
    for place in ("docs", page["id"]):
        assert client.delete(f"{AT}/bases/tea/sources/{place}").status_code == 204
    problem(client.get(at), 404, "NotFoundError", "no source")


@pytest.mark.parametrize("host", PRIVATE.split())
def test_private_addresses_are_refused_before_anything_connects(client, host):
    before = client.get("/api/jobs").json()["data"]
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://{host}:{listening.getsockname()[1]}/latest"
        for path, more in (("url", {}), ("url", {"crawl": True}), ("openapi", {})):
            body = {"kb": "tea", "url": url, **more}
            refused = client.post(f"{AT}/import/{path}", json=body)
            problem(refused, 403, "ForbiddenAddressError", "which is refused")
        assert select.select([listening], [], [], 0)[0] == []
    assert client.get("/api/jobs").json()["data"] == before


def test_private_addresses_and_code_of_the_server_are_for_admins(client, web, tokens):
    headers = bearer(tokens.create("writer", scope="write").token)
    url = f"{web}/mate.html"
    refused = client.post(f"{AT}/import/url", json={"kb": "tea", "url": url}, headers=headers)
    problem(refused, 403, "ForbiddenAddressError", "allow_private permits")
    for body in (
        {"sources": [{"type": "page", "url": url, "allow_private": True}]},
        {"sources": [{"type": "package", "name": "json"}]},
        {"sources": [{"type": "plugin", "name": "x"}]},
    ):
        answered = client.post(f"{AT}/bases/tea/ingest", json=body, headers=headers)
        problem(answered, 403, "ForbiddenError", "admin")
    body = {"query": "tea", "retrieval": {"postprocessors": [{"path": "os:system"}]}}
    problem(client.post(f"{AT}/search", json=body, headers=headers), 403, "ForbiddenError", "admin")
    spec = client.put(f"{AT}/bases/tea/spec", json={"spec": {}}, headers=headers)
    problem(spec, 403, "ForbiddenError", "admin")
