"""Imports over HTTP: pages, sites, files and descriptions, and what is refused."""

import json
import select
import socket
from urllib.parse import quote

import pytest
from fastapi.testclient import TestClient

import kbkit
from kbkit.access import Tokens
from kbkit.runtime.web_server import serve_folder
from kbkit.server.app import application

AT = "/api/knowledge"
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
    with TestClient(application(workspace), base_url="http://127.0.0.1") as asked:
        yield asked


@pytest.fixture(scope="module")
def web(tmp_path_factory):
    site = tmp_path_factory.mktemp("web")
    page = "<html><body><main><h1>{0}</h1><p>{0} steeps. <a href='/{1}'>on</a></p></main></body>"
    (site / "index.html").write_text(page.format("Tea", "mate.html"))
    (site / "mate.html").write_text(page.format("Mate", ""))
    with serve_folder(site) as url:
        yield url.rstrip("/")


def problem(response, status, error, says):
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    assert response.json()["error"] == error
    assert says in response.json()["detail"]


def test_a_page_is_searchable_when_it_is_answered(client, web):
    body = {"kb": "tea", "url": f"{web}/mate.html", "tags": ["green"], "allow_private": True}
    made = client.post(f"{AT}/import/url", json=body)
    assert made.status_code == 200
    (document,) = made.json()["documents"]
    assert (document["title"], document["tags"]) == ("Mate", ["green"])
    assert made.json()["chunks"] == document["chunks"] == 1
    found = client.post(f"{AT}/search", json={"query": "mate", "kb": "tea"}).json()["hits"]
    assert found[0]["document_id"] == document["id"]
    missing = client.post(f"{AT}/import/url", json={**body, "url": f"{web}/none.html"})
    problem(missing, 409, "SourceError", "404")


def test_a_crawl_is_a_job(client, web):
    body = {"kb": "tea", "url": f"{web}/", "crawl": True, "allow_private": True}
    begun = client.post(f"{AT}/import/url", json=body)
    assert begun.status_code == 202
    job = client.get(begun.headers["location"], params={"wait": 20}).json()
    assert (job["state"], job["kbs"]) == ("done", ["tea"])
    assert {one["title"] for one in job["result"]["documents"]} == {"Tea", "Mate"}


def test_an_import_with_a_key_is_done_once(client):
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


def test_files_are_read_and_kept_no_longer_than_that(client, workspace):
    files = [
        ("files", ("docs/a.md", b"# Alpha\n\nAlpha.")),
        ("files", ("b.md", b"# Beta\n\nBeta.")),
    ]
    made = client.post(f"{AT}/import/file", data={"kb": "tea", "tags": ["x", "y"]}, files=files)
    told = {one["uri"]: one["tags"] for one in made.json()["documents"]}
    assert told == {"docs/a.md": ["x", "y"], "b.md": ["x", "y"]}
    assert not [*workspace.path.glob("uploads/*")]


def test_files_come_while_those_of_another_request_are_deleted(client, workspace):
    uploads = workspace.path / "uploads"
    uploads.mkdir(exist_ok=True)
    going = uploads / "going"
    going.symlink_to("gone")  # listed, and not there when it is looked at
    made = client.post(
        f"{AT}/import/file", data={"kb": "tea"}, files=[("files", ("c.md", b"# Gamma\n\nGamma."))]
    )
    going.unlink()
    assert made.status_code == 200, made.text


@pytest.mark.parametrize("name", ["../a.md", "/etc/a.md", "a/../../b.md", ".git/config", "con"])
def test_a_file_whose_name_leads_elsewhere_is_refused(client, workspace, name):
    answered = client.post(
        f"{AT}/import/file", data={"kb": "tea"}, files=[("files", (name, b"# Alpha"))]
    )
    assert answered.status_code in (400, 404)
    assert answered.json()["error"] in ("PathOutsideError", "InvalidPathError")
    assert not [*workspace.path.glob("uploads/*")]


def test_what_is_no_document_is_told(client):
    for name, data in (("a.exe", b"MZ"), ("a.zip", b"PK\x03\x04"), ("a.pdf", b"no PDF")):
        answered = client.post(
            f"{AT}/import/file", data={"kb": "tea"}, files=[("files", (name, data))]
        )
        problem(answered, 409, "SourceError", name)
    twice = [("files", ("a.md", b"# A")), ("files", ("a.md", b"# B"))]
    answered = client.post(f"{AT}/import/file", data={"kb": "tea"}, files=twice)
    problem(answered, 409, "ImpossibleError", "the same name")
    empty = client.post(f"{AT}/import/openapi", json={"kb": "tea", "description": "hello"})
    problem(empty, 409, "SourceError", "no OpenAPI description")


@pytest.mark.parametrize(
    "source",
    [
        {"type": "files", "path": "/etc"},
        {"type": "mirror", "path": "/srv", "base_url": "https://x.org/"},
        {"type": "jsonl", "path": "x.jsonl"},
        {"type": "openapi", "path": "/etc/api.json"},
    ],
)
def test_no_path_of_the_server_is_read(client, source):
    for answered in (
        client.post(f"{AT}/bases/tea/ingest", json={"sources": [source]}),
        client.post(f"{AT}/bases/tea/sources", json={"sources": [source]}),
    ):
        problem(answered, 403, "ForbiddenError", "names a path")
    if source["path"].startswith("/"):
        form = {"kb": "tea", "source": json.dumps(source)}
        sent = client.post(f"{AT}/import/file", data=form, files=[("files", ("a.md", b"# A"))])
        assert sent.json()["error"] == "PathOutsideError"


def test_a_source_has_an_address_and_a_version(workspace, client, web):
    workspace["tea"].sources.add(
        [{"type": "page", "url": f"{web}/?a=b&c"}, {"type": "files", "path": "/srv/secret/docs"}]
    )
    listed = client.get(f"{AT}/bases/tea/sources", params={"limit": 1}).json()
    assert (len(listed["data"]), listed["next_cursor"] is not None) == (1, True)
    asked = client.get(f"{AT}/bases/tea/sources", params={"source": "x"})
    problem(asked, 400, "ArgumentError", "source")
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
    tokens = Tokens(workspace)
    secret, info = tokens.create("reader")
    headers = {"Authorization": f"Bearer {secret}"}
    hidden = client.get(f"{AT}/bases/tea/sources/docs", headers=headers)
    tokens.revoke(info.id)
    assert hidden.status_code == 200
    assert "/srv" not in hidden.text
    for place in ("docs", page["id"]):
        removed = client.delete(f"{AT}/bases/tea/sources/{place}")
        assert removed.status_code == 204
    problem(client.get(at), 404, "NotFoundError", "no source")


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost",
        "2130706433",
        "0x7f.1",
        "[::1]",
        "[::ffff:7f00:1]",
        "10.0.0.1",
        "0.0.0.0",
        "169.254.169.254",
        "[fe80::1]",
        "100.100.100.200",
    ],
)
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


def test_private_addresses_and_code_of_the_server_are_for_admins(workspace, client, web):
    tokens = Tokens(workspace)
    secret, info = tokens.create("writer", scope="write")
    headers = {"Authorization": f"Bearer {secret}"}
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
    ranking = {"postprocessors": [{"path": "os:system"}]}
    body = {"query": "tea", "retrieval": ranking}
    problem(client.post(f"{AT}/search", json=body, headers=headers), 403, "ForbiddenError", "admin")
    spec = client.put(f"{AT}/bases/tea/spec", json={"spec": {}}, headers=headers)
    problem(spec, 403, "ForbiddenError", "admin")
    tokens.revoke(info.id)
