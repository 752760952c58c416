"""Routes of knowledge bases, beyond what tests/conformance calls."""

import pytest
from fastapi.testclient import TestClient

import kbkit
from kbkit.server.app import application
from tests.server.requests import pages, problem

TEA = "# Green tea\n\nSteep two minutes.\n\n## Water {#water}\n\nNot hot, in a pot.\n"
URI = "https://tea.example/green?kind=a b"


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with kbkit.open(tmp_path_factory.mktemp("rest") / "kb") as workspace:
        kb = workspace.create("tea", description="Teas")
        kb.add("Green tea", TEA, source=URI, tags=["hot"])
        for number in range(5):
            kb.add(f"Tea {number}", f"Black tea number {number}.")
        yield TestClient(application(workspace), base_url="http://127.0.0.1")


def test_document_is_read_whole_by_section_and_by_range(client):
    ((document,),) = pages(client, "/api/knowledge/documents", kb="tea", tags="hot")
    assert document["content"] == ""
    place = f"/api/knowledge/documents/{document['id']}"
    whole = client.get(place).json()
    assert (whole["kb"], whole["document"]["content"]) == ("tea", TEA)
    assert (whole["start"], whole["end"], whole["length"]) == (0, len(TEA), len(TEA))
    for section in ("Water", "water", "#water"):
        part = client.get(place, params={"section": section}).json()
        assert part["document"]["content"] == TEA[TEA.index("## Water") :]
    part = client.get(place, params={"section": "water", "start": 3, "end": 8}).json()
    assert part["document"]["content"] == "Water"
    assert TEA[part["start"] : part["end"]] == "Water"
    problem(client.get(place, params={"section": "Milk"}), 404, "NotFoundError", "'Water'")
    problem(client.get(place, params={"start": "two"}), 422, "ConfigError", "start='two'")


@pytest.mark.parametrize(
    ("body", "kind", "words"),
    [
        (b'{"kb": "tea",', "json", "is not JSON (Expecting"),
        (b'{"kb": "t\xff"}', "json", "is not JSON ('utf-8' codec"),
        (b"[" * 100_000, "json", "is not JSON (maximum recursion"),
        (b'{"url": ' + b"9" * 5_000 + b"}", "json", "is not JSON (Exceeds the limit"),
        (b"[]", "json", "is not a mapping"),
        (b"{}", "octet-stream", "with Content-Type: application/json"),
        (b'{"url": "ftp://x"}', "json", "not a web address; begin it with http"),
        (b'{"url": "http://a:b@x"}', "json", "contains a user name or password"),
    ],
    ids=range(8),
)
def test_body_that_cannot_be_read_is_explained(client, body, kind, words):
    headers = {"Content-Type": f"application/{kind}"}
    answer = client.post("/api/knowledge/import/url", content=body, headers=headers)
    assert answer.status_code in (400, 422)
    assert words in answer.json()["detail"]


def test_document_address_takes_any_uri(client):
    found = client.get("/api/knowledge/documents/https%3A%2F%2Ftea.example%2Fgreen%3Fkind%3Da%20b")
    assert found.json()["document"]["uri"] == URI
    missing = client.get("/api/knowledge/documents/..%2F..%2Fetc%2Fpasswd")
    problem(missing, 404, "NotFoundError", "../../etc/passwd")


def test_documents_are_listed_by_pages(client):
    listed = pages(client, "/api/knowledge/documents", kb="tea", limit=2)
    uris = [document["uri"] for page in listed for document in page]
    assert uris == sorted(uris)
    assert len(uris) == 6
    for cursor in ("zzz", "WzFd", "Wz", "é"):
        answered = client.get("/api/knowledge/documents", params={"kb": "tea", "cursor": cursor})
        problem(answered, 404, "NotFoundError", "next_cursor")


def test_document_change_with_an_old_version_is_refused(client):
    document = {"kb": "tea", "title": "A", "content": "b"}
    added = client.post("/api/knowledge/documents", json=document)
    assert added.status_code == 201
    place, version = added.headers["location"], added.headers["etag"]
    assert client.get(place).headers["etag"] == version
    changed = client.put(place, json={"title": "B"}, headers={"If-Match": version})
    assert (changed.status_code, changed.json()["title"]) == (200, "B")
    late = client.put(place, json={"title": "C"}, headers={"If-Match": version})
    problem(late, 412, "VersionConflictError", "read it again")
    problem(client.delete(place, headers={"If-Match": version}), 412, "VersionConflictError")
    problem(client.delete(place, headers={"If-Match": "x"}), 412, "VersionConflictError")
    gone = client.delete(place, headers={"If-Match": changed.headers["etag"]})
    assert (gone.status_code, gone.content) == (204, b"")
    problem(client.get(place), 404, "NotFoundError")


@pytest.mark.parametrize(
    ("body", "status", "error", "says"),
    [
        ({"query": " "}, 400, "ConfigError", "the query is empty"),
        ({"query": 5}, 422, "ConfigError", "query=5"),
        ({"query": "a", "limit": 0}, 422, "ConfigError", "limit=0: must be greater"),
        ({"query": "a", "limit": 10**30}, 422, "ConfigError", "less than or equal to 1000"),
        ({"query": "a", "mode": "fuzzy"}, 422, "ConfigError", "mode='fuzzy'"),
        ({"query": "a", "filters": {"headin": "x"}}, 400, "ConfigError", "headin not known"),
        ({"query": "a", "filters": [1]}, 422, "ConfigError", "filters=[1]"),
        ({"query": "a", "kbs": []}, 422, "ConfigError", "kbs=[]"),
        ({"query": "a", "kbs": [1]}, 422, "ConfigError", "kbs.0=1"),
        ({"query": "a", "kb": "tea", "kbs": ["tea"]}, 409, "ImpossibleError", "one of the two"),
        ({"query": "a", "kbs": ["milk"]}, 404, "NotFoundError", "'milk'; choose from tea"),
        ({"query": "a", "graph": 9}, 422, "ConfigError", "graph=9"),
        ({"query": "a", "retrieval": {"rating_weight": 9}}, 422, "ConfigError", "rating_weight"),
        ({"query": "a", "depth": 1}, 422, "ArgumentError", "depth"),
        ({}, 422, "ArgumentError", "query"),
    ],
)
def test_invalid_search_is_answered_as_in_python(client, body, status, error, says):
    problem(client.post("/api/knowledge/search", json=body), status, error, says)


def test_unknown_parameter_is_named(client):
    answered = client.get("/api/knowledge/documents", params={"kb": "tea", "limt": 5})
    problem(answered, 400, "ArgumentError", "no parameter 'limt'; did you mean 'limit'?")
    answered = client.get("/api/knowledge/bases", params={"x": 1})
    problem(answered, 400, "ArgumentError", "choose from limit, cursor")
    assert client.get("/api/knowledge/documents", params={"kb": "tea", "limit": 5}).is_success


@pytest.mark.slow
def test_export_can_publish_the_served_site(client):
    assert client.post("/api/knowledge/bases", json={"name": "shown"}).is_success
    options = {"publish": True, "model": False, "wait": False}
    problem(client.get("/site/shown/"), 404, "NotFoundError", "publish: true")
    about = {"kb": "shown", "title": "Sencha", "content": "# Sencha\n\nSteep it."}
    assert client.post("/api/knowledge/documents", json=about).is_success
    place = client.post("/api/knowledge/bases/shown/exports", json=options).headers["location"]
    while (job := client.get(place, params={"wait": 20}).json())["state"] in ("queued", "running"):
        pass
    assert (job["result"]["archive"], job["result"]["built"]) == ("", True)
    assert "Sencha" in client.get("/site/shown/").text


def test_lists_of_the_graph_have_pages(client):
    names = [f"Leaf {number}" for number in range(5)]
    for name in names:
        assert client.post("/api/knowledge/graph/entities", json={"name": name}).is_success
    for name in names[1:]:
        body = {"source": names[0], "name": "beside", "target": name}
        assert client.post("/api/knowledge/graph/relationships", json=body).is_success
    for path, least in (("entities", 5), ("relationships", 4), ("edits", 9)):
        place = f"/api/knowledge/graph/{path}"
        whole = client.get(place, params={"limit": 1_000}).json()
        assert whole["next_cursor"] is None
        assert len(whole["data"]) >= least
        parts = list(pages(client, place, limit=2))
        assert all(1 <= len(part) <= 2 for part in parts)
        assert [row for part in parts for row in part] == whole["data"]
        problem(client.get(place, params={"cursor": "x"}), 404, "NotFoundError", "next_cursor")


def test_changes_take_if_match_and_reads_give_an_etag(client):
    paths = client.get("/openapi.json").json()["paths"]
    for path, operations in paths.items():
        for method, operation in operations.items():
            names = {each["name"].lower() for each in operation.get("parameters", ())}
            if "if-match" in names:
                assert "412" in operation["responses"], (method, path)
                read = paths.get(f"{path}/between", operations)["get"]
                assert "ETag" in read["responses"]["200"]["headers"], (method, path)
            elif method in ("put", "patch", "delete"):
                # a job has no version to cancel
                assert "get" not in operations or path.startswith("/api/jobs"), (method, path)
