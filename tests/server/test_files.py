"""Files and entries over HTTP: bytes and headers."""

from base64 import b64encode

import httpx
import pytest

import kbkit
from kbkit.server import ServerSettings, running
from tests.server.requests import problem


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with (
        kbkit.open(tmp_path_factory.mktemp("rest") / "kb") as workspace,
        running(workspace, ServerSettings(port=0, rate=0)) as url,
        httpx.Client(base_url=url) as client,
    ):
        workspace.files.write("notes/a.md", "0123456789")
        (workspace.files.path / "bin.dat").write_bytes(b"\xff\xfe\x00")
        workspace.entries.create(
            "Logs", files={"code/x.html": "<script>1</script>", "artifacts/big.bin": b"ab" * 70_000}
        )
        yield client


def test_file_as_bytes_and_as_json(served):
    assert served.get("/api/files/bin.dat").content == b"\xff\xfe\x00"
    info = served.get("/api/files/notes/a.md", params={"as": "info"})
    assert info.json()["size"] == 10
    assert info.headers["etag"] == served.get("/api/files/notes/a.md").headers["etag"]
    assert served.get("/api/files/notes", params={"as": "info"}).json()["kind"] == "folder"
    listed = served.get("/api/files", params={"path": "notes"}).json()
    assert [each["path"] for each in listed["data"]] == ["notes/a.md"]


def test_browsers_run_no_content_of_files(served):
    for path, kind in (
        ("/api/entries/logs/artifacts/code/x.html", "text/html"),
        ("/api/files/notes/a.md", "text/markdown"),
    ):
        answer = served.get(path)
        assert answer.headers["content-type"].startswith(kind)
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "sandbox" in answer.headers["content-security-policy"]
        assert answer.headers["content-disposition"].startswith("attachment")


def test_file_name_cannot_break_headers(served):
    path = "/api/files/a'b;c%20%C3%BC.md"
    assert served.put(path, content=b"x").is_success
    shown = served.get(path).headers["content-disposition"]
    assert shown == "attachment; filename*=UTF-8''a%27b%3Bc%20%C3%BC.md"
    assert served.put("/api/files/a%0d%0aSet-Cookie:x", content=b"x").status_code == 404


def test_file_and_entry_versions_are_headers(served):
    created = served.put("/api/files/v.md", content=b"1", headers={"If-Match": '""'})
    assert created.status_code == 200
    etag = created.headers["etag"]
    again = served.put("/api/files/v.md", content=b"2", headers={"If-Match": '""'})
    problem(again, 412, "VersionConflictError", "already exists")
    assert served.put("/api/files/v.md", content=b"2", headers={"If-Match": etag}).is_success
    for method, body in (("PUT", b"3"), ("POST", b"3"), ("DELETE", None)):
        late = served.request(method, "/api/files/v.md", content=body, headers={"If-Match": etag})
        assert late.status_code == 412
    etag = served.get("/api/entries/logs").headers["etag"]
    changed = served.put("/api/entries/logs", json={"category": "x"}, headers={"If-Match": etag})
    assert changed.headers["etag"] != etag
    late = served.put("/api/entries/logs", json={"category": "y"}, headers={"If-Match": etag})
    assert late.status_code == 412
    assert served.delete("/api/entries/logs", headers={"If-Match": etag}).status_code == 412


def test_folder_read_as_a_file_names_its_listing(served):
    served.post("/api/files/mkdir", json={"path": "a b"})
    detail = problem(served.get("/api/files/a b"), 409, "IsFolderError")
    place = detail.partition("GET ")[2].partition(" ")[0]
    assert place.startswith("/api/files/tree?")
    assert served.get(place).json()["info"]["path"] == "a b"


def test_bytes_that_are_not_text_are_refused(served):
    problem(served.put("/api/files/b.md", content=b"\xff"), 409, "NotTextError")
    assert served.get("/api/files/b.md").status_code == 404


def test_artifact_is_downloaded_whole_or_in_ranges(served):
    path = "/api/entries/logs/artifacts/artifacts/big.bin"
    whole = served.get(path)
    assert len(whole.content) == 140_000
    for asked, status, content in (
        ("bytes=139998-", 206, b"ab"),
        ("bytes=1-2", 206, b"ba"),
        ("bytes=-1", 206, b"b"),
        ("bytes=140000-", 416, b""),
    ):
        part = served.get(path, headers={"Range": asked})
        assert (part.status_code, part.content) == (status, content), asked
    for if_range, status in ((whole.headers["etag"], 206), ('"other"', 200)):
        headers = {"Range": "bytes=0-3", "If-Range": if_range}
        assert served.get(path, headers=headers).status_code == status
    files = served.get("/api/entries/logs/artifacts").json()["data"]
    assert {"path": "code/x.html", "size": 18} in files


def test_entries_are_listed_by_pages_and_rated(served):
    for number in range(3):
        created = served.post("/api/entries", json={"title": f"Page {number}", "tags": ["p"]})
        assert created.status_code == 201
        assert created.headers["location"] == f"/api/entries/page-{number}"
    params = {"tag": "p", "sort": "title", "page": 2, "limit": 2}
    page = served.get("/api/entries", params=params).json()
    assert [each["slug"] for each in page["data"]] == ["page-2"]
    assert (page["total"], page["page"]) == (3, 2)
    rated = served.post("/api/entries/page-1/rate", json={"score": 4}).json()["rating"]
    assert (rated["average"], rated["count"]) == (4.0, 1)


def test_task_files_are_learned(served):
    code = {"base64": b64encode(b"\xff\xfe").decode()}
    files = {"prompt.md": "Do it.", "code/run.py": code}
    hidden = {**files, ".knowledge/skill.yaml": "title: Sent as JSON\n"}
    refused = served.post("/api/entries/learn", json={"files": hidden})
    assert refused.status_code == 404  # entries have no hidden files
    body = {"files": {**files, "skill.yaml": "title: Sent as JSON\n"}, "task_id": "t"}
    learned = served.post("/api/entries/learn", json=body)
    assert learned.json()["slug"] == "sent-as-json"
    assert learned.json()["origin_task_id"] == "t"
    stored = served.get("/api/entries/sent-as-json/artifacts/code/run.py")
    assert stored.content == b"\xff\xfe"
    for path in ("../x", "/etc/x", "a/../../x"):
        refused = served.post("/api/entries/learn", json={"files": {path: "x"}})
        problem(refused, 404, "PathOutsideError")
    for body in ({}, {"files": {}}, {"files": {"a": {"base64": "!"}}}, {"file": {}}, []):
        assert served.post("/api/entries/learn", json=body).status_code == 422
