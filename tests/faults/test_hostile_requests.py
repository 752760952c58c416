"""Hostile requests: each gets one error, and changes nothing."""

from __future__ import annotations

import contextlib
import io
import json
import os
import socket
import zipfile
from base64 import urlsafe_b64encode
from typing import NamedTuple

import pytest

import kbkit
from tests.faults.served import Served, admin_token, state

LONG = "KBKIT_EXAMPLES" in os.environ  # `make soak`
DEEP = "[" * 100_000
JSON = "application/json"


def zip_bomb() -> bytes:
    """A small file that unpacks to 50 megabytes."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("word/document.xml", "a" * 50_000_000)
    return data.getvalue()


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile") / "kb"
    (folder.parent / "outside.md").write_text("# Outside\n\nquicksilver\n")
    with kbkit.open(folder) as opened:
        opened.create("drinks").add("Tea", "Steep tea for two minutes.")
        opened.files.write("notes/today.md", "# Today\n\nTea.\n")
        opened.entries.create("Brew tea", slug="brew-tea", prompt="Boil water.")
        yield opened


@pytest.fixture(scope="module")
def served(workspace):
    running = Served(workspace.path, admin_token(workspace), "--max-body", "2")
    before = state(workspace)
    yield running
    log = running.log.read_text("utf-8")
    assert "Traceback" not in log, log
    assert running.token not in log
    assert state(workspace) == before
    assert running.end() == 0


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


def exchange(served, data: bytes, *, most: float = 20) -> Answer:
    """Send bytes, and read to the end of the answer or of the connection."""
    with socket.create_connection(("127.0.0.1", served.port), most) as peer:
        with contextlib.suppress(OSError):  # the server may close before it has read all
            peer.sendall(data)
        data = b""
        while part := receive(peer):
            data += part
            head, separator, body = data.partition(b"\r\n\r\n")
            if separator:
                lines = head.decode("latin-1").split("\r\n")
                pairs = (line.partition(": ")[::2] for line in lines[1:])
                headers = {name.lower(): value for name, value in pairs}
                if len(body) >= int(headers.get("content-length", "0")):
                    return Answer(int(lines[0].split()[1]), headers, body)
    raise AssertionError(f"no whole answer, but {data[:200]!r}")


def receive(peer: socket.socket) -> bytes:
    try:
        return peer.recv(65536)
    except ConnectionResetError:
        return b""


def request(served, method, target, *lines, body=b"", host=None, token=True) -> bytes:
    """A request as bytes, whatever is in it."""
    head = [
        f"{method} {target} HTTP/1.1".encode(),
        f"Host: {host or f'127.0.0.1:{served.port}'}".encode(),
        *([f"Authorization: Bearer {served.token}".encode()] if token else []),
        *(line if isinstance(line, bytes) else line.encode() for line in lines),
    ]
    if not any(line.lower().startswith((b"content-length", b"transfer-enc")) for line in head):
        head.append(f"Content-Length: {len(body)}".encode())
    return b"\r\n".join(head) + b"\r\n\r\n" + body


def ask(served, method: str, target: str, *lines: str | bytes, most: float = 20, **options):
    return exchange(served, request(served, method, target, *lines, **options), most=most)


def post(served, path: str, body: bytes, kind: str = JSON, most: float = 20) -> Answer:
    target = f"/api/knowledge/{path}"
    return ask(served, "POST", target, f"Content-Type: {kind}", body=body, most=most)


def refused(served, answer: Answer, *statuses: int) -> None:
    assert answer.status in (statuses or range(400, 500)), (answer.status, answer.body[:300])
    assert answer.headers["content-type"] == "application/problem+json", answer
    problem = json.loads(answer.body)
    assert problem["status"] == answer.status
    assert problem["detail"]
    assert b"Traceback" not in answer.body
    assert served.token.encode() not in answer.body
    assert b"quicksilver" not in answer.body
    assert "x-evil" not in answer.headers


OUTSIDE = """
../outside.md %2e%2e/outside.md %252e%252e/outside.md ..%2foutside.md ..%5coutside.md
notes/../../outside.md /etc/passwd %2fetc%2fpasswd ....//x notes/%00 notes%00.md
%c0%ae%c0%ae/outside.md %ff%fe ~/x C:%5cx .kbkit/x
"""
UP = (*OUTSIDE.split(), "a" * 3000)


@pytest.mark.parametrize("path", UP, ids=range(len(UP)))
@pytest.mark.parametrize(
    "place", ["/api/files/{}", "/api/entries/brew-tea/artifacts/{}", "/site/drinks/{}"]
)
def test_no_path_leaves_the_workspace(served, place, path):
    refused(served, ask(served, "GET", place.format(path)), 400, 403, 404)


@pytest.mark.parametrize("path", [p for p in UP if "%25" not in p and "//" not in p and p != "~/x"])
def test_nothing_is_written_outside(served, path):
    for method in ("PUT", "DELETE"):
        if method == "PUT" and path.startswith(("/etc", "%2fetc", "C:")):
            continue  # valid names of files inside
        refused(served, ask(served, method, f"/api/files/{path}", body=b"x"))


BODIES = {
    "no JSON": b"{",
    "an open string": b'{"query": "',
    "nothing": b"",
    "a number": b"1",
    "null": b"null",
    "a list": b"[]",
    "not UTF-8": b'{"query": "\xff"}',
    "NaN": b'{"query": NaN}',
    "deep": DEEP.encode(),
    "deep objects": b'{"query":' * 50_000,
    "a large number": b'{"query": "tea", "limit": ' + b"9" * 10_000 + b"}",
    "infinite": b'{"query": "x", "limit": 1e999}',
    "a lone surrogate": b'{"query": "\\ud800", "kb": "\\udfff"}',
    "NUL": b'{"query": "tea", "kb": "\\u0000"}',
    "unknown keys": b'{"query": "tea", "__class__": 1}',
    "wrong types": b'{"query": {"a": 1}}',
    "a huge key": b'{"' + b"k" * 1_000_000 + b'": 1}',
    "many keys": json.dumps({str(n): n for n in range(50_000)}).encode(),
    "plugins": b'{"query": "tea", "retrieval": {"postprocessors": [{"class": "os.system"}]}}',
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
@pytest.mark.parametrize("path", ["search", "context", "documents", "bases"])
def test_invalid_bodies(served, path, body):
    answer = post(served, path, body)
    refused(served, answer)
    assert len(answer.body) < 5_000


def test_duplicate_keys_have_one_meaning(served):
    """Permissions and the search both read the last one, as Python's JSON does."""
    body = b'{"query": "tea", "kb": "drinks", "kb": "nowhere"}'
    refused(served, post(served, "search", body), 404)


@pytest.mark.parametrize(
    "kind",
    [
        "",
        "text/plain",
        "application/xml",
        "multipart/form-data",
        "multipart/form-data; boundary=" + "b" * 5000,
        "application/x-www-form-urlencoded",
        "\tapplication/json;;=",
        "application/json; charset=utf-7",
    ],
)
def test_invalid_content_types(served, kind):
    lines = [f"Content-Type: {kind}"] if kind else []
    for path in ("/api/knowledge/documents", "/api/entries/learn", "/api/entries"):
        refused(served, ask(served, "POST", path, *lines, body=b'+AHsAIg-{"kb" "x"}'))


METHODS = ("TRACE", "CONNECT", "OPTIONS", "PATCH", "FOO", "GETGETGET", "get", "PROPFIND", "LOCK")


@pytest.mark.parametrize("method", METHODS)
def test_unknown_methods(served, method):
    answer = ask(served, method, "/api/knowledge/search")
    if answer.headers["content-type"].startswith("text/plain"):
        assert answer.body == b"Invalid HTTP request received."  # not even HTTP
        return
    refused(served, answer, 400, 405)


@pytest.mark.parametrize("name", ["X-HTTP-Method-Override", "X-Method-Override", "X-HTTP-Method"])
def test_no_header_overrides_the_method(served, name):
    path = "/api/knowledge/bases/drinks"
    assert ask(served, "GET", path, f"{name}: DELETE").status == 200
    refused(served, ask(served, "GET", f"{path}?_method=DELETE"), 400)


HOSTS = """
evil.example 127.0.0.1.evil.example 127.0.0.1@evil.example localhost. 127.1 169.254.169.254 0.0.0.0
2130706433 evil.example:80
"""


@pytest.mark.parametrize("host", [*HOSTS.split(), "127.0.0.1, evil.example"])
@pytest.mark.parametrize("path", ["/health", "/api/files", "/mcp", "/docs", "/site/drinks/"])
def test_foreign_hosts(served, host, path):
    refused(served, ask(served, "GET", path, host=host), 403, 400)


ORIGINS = """
https://evil.example null http://127.0.0.1 file:// http://localhost:1 http://127.0.0.1.evil.example
"""


@pytest.mark.parametrize("origin", [*ORIGINS.split(), ""])
def test_foreign_origins(served, origin):
    for method, path in (("POST", "/api/knowledge/search"), ("POST", "/mcp"), ("GET", "/health")):
        refused(served, ask(served, method, path, f"Origin: {origin}", body=b"{}"), 403)


FRAMINGS = {
    "two lengths": (["Content-Length: 2", "Content-Length: 10"], b"{}"),
    "length and chunks": (["Content-Length: 2", "Transfer-Encoding: chunked"], b"0\r\n\r\n"),
    "a negative length": (["Content-Length: -1"], b"{}"),
    "a length in words": (["Content-Length: two"], b"{}"),
    "an unknown coding": (["Transfer-Encoding: gzip, chunked"], b"0\r\n\r\n"),
    "wrong chunks": (["Transfer-Encoding: chunked"], b"zz\r\n{}\r\n0\r\n\r\n"),
    "a folded header": (["X-A: b\r\n c: d", "Content-Length: 2"], b"{}"),
    "a header without a name": ([": x", "Content-Length: 2"], b"{}"),
    "a space before the colon": (["X-A : x", "Content-Length: 2"], b"{}"),
    "NUL in a header": (["X-A: a\0b", "Content-Length: 2"], b"{}"),
    "a long header": (["X-A: " + "a" * 200_000, "Content-Length: 2"], b"{}"),
    "many headers": ([*(f"X-{n}: a" for n in range(5_000)), "Content-Length: 2"], b"{}"),
}


@pytest.mark.parametrize(("lines", "body"), FRAMINGS.values(), ids=FRAMINGS.keys())
def test_ambiguous_framing(served, lines, body):
    answer = ask(served, "POST", "/api/knowledge/search", *lines, body=body)
    assert 400 <= answer.status < 500, answer
    assert b"Traceback" not in answer.body


@pytest.mark.parametrize(
    "query",
    [
        "&".join(f"p{n}=1" for n in range(5_000)),
        "kb=" + "a" * 40_000,
        "kb=%00",
        "kb=%ff",
        "kb=drinks&limit=-1",
        "kb=drinks&limit=1e9",
        "kb=drinks&limit=" + "9" * 4000,
        "kb=drinks&cursor=%00",
        "kb=drinks&cursor=W10",
        "kb=drinks&path=" + "*" * 3000,
        "kb=drinks&after=yesterday",
        "kb=%ed%a0%80",
        "kb=drinks&state=x",
        "kb[]=drinks",
        "kb=drinks&token=x",
    ],
    ids=range(15),
)
def test_invalid_parameters(served, query):
    answer = ask(served, "GET", f"/api/knowledge/documents?{query}")
    if "path=" in query:  # a valid pattern
        assert answer.status in (200, 400)
        return
    refused(served, answer)


@pytest.mark.parametrize("place", [[2**63], [2**200], ["a", 2**63], ["\ud800", 1], [None], {}])
def test_forged_cursors(served, place):
    cursor = urlsafe_b64encode(json.dumps(place).encode()).decode().rstrip("=")
    for path in ("graph/entities", "graph/edits", "bases/drinks/chunks", "bases/drinks/ratings"):
        refused(served, ask(served, "GET", f"/api/knowledge/{path}?cursor={cursor}"), 404)


@pytest.mark.parametrize(
    "header",
    ["If-Match", "Range", "Idempotency-Key", "If-None-Match", "Mcp-Session-Id", "Authorization"],
)
@pytest.mark.parametrize("value", ["a" * 9000, '"a\x0bb"', "\xe9\xff", "bytes=0-,-1,9-1", "*, *"])
def test_invalid_headers(served, header, value):
    for method, path in (("GET", "/api/files/notes/today.md"), ("DELETE", "/api/files/nowhere.md")):
        answer = ask(served, method, path, f"{header}: {value}".encode("latin-1"))
        assert answer.status < 500, answer
        if method == "DELETE" and "text/plain" not in answer.headers["content-type"]:
            refused(served, answer)


def test_oversized_bodies(served):
    refused(served, post(served, "search", b" " * 2_100_000), 413)
    chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    for line, body in (
        ("Content-Length: 99999999999", b"x"),
        ("Transfer-Encoding: chunked", chunk * 40),
    ):
        refused(served, ask(served, "PUT", "/api/files/long.md", line, body=body), 413)


def test_zip_bomb(served):
    refused(served, upload(served, {"bomb.docx": zip_bomb()}))


def test_uploaded_files_that_exclude_each_other(served):
    for names in (("a", "a/b.md"), ("a/b.md", "a"), ("a/b.md", "a/b.md/c.md")):
        refused(served, upload(served, dict.fromkeys(names, b"# Tea")), 409)


def upload(served, files: dict[str, bytes]) -> Answer:
    part = b'--x\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n'
    body = part % (b"kb", b"drinks")
    for name, data in files.items():
        body += part % (b'files"; filename="' + name.encode(), data)
    kind = "multipart/form-data; boundary=x"
    return post(served, "import/file", body + b"--x--", kind, most=60)


def test_documents_without_text(served):
    for document in ({"uri": 5}, {"uri": "x"}, {"uri": "x", "title": "x", "content": None}):
        body = json.dumps({"documents": [document]}).encode()
        refused(served, post(served, "bases/drinks/ingest", body, most=60), 409)


URLS = """
file:///etc/passwd ftp://x/ gopher://127.0.0.1/ //x http:// http://user:quicksilver@127.0.0.1/
javascript:1 /etc/passwd
"""


@pytest.mark.parametrize("url", [*URLS.split(), "http://a b/", "http://\x00/"])
def test_imports_of_invalid_addresses(served, url):
    body = json.dumps({"kb": "drinks", "url": url}).encode()
    refused(served, post(served, "import/url", body, most=60))


def test_slow_senders_block_nobody(served):
    head = request(served, "POST", "/api/knowledge/search", "Content-Length: 1000")[:-2]
    many = [socket.create_connection(("127.0.0.1", served.port)) for _ in range(200)]
    for peer in many[:100]:
        peer.sendall(head[:40])
    for peer in many[100:]:
        peer.sendall(head + b"\r\n{")
    assert ask(served, "GET", "/health").status == 200
    if LONG:  # they time out in the end
        for peer in many:
            peer.settimeout(120)
            data = peer.recv(65536)
            assert data == b"" or data.startswith(b"HTTP/1.1 408")
    for peer in many:
        peer.close()
