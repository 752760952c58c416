"""Requests that nobody sends who means well: each is one problem, and changes nothing."""

from __future__ import annotations

import contextlib
import io
import json
import os
import socket
import threading
import zipfile
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

import kbkit
from tests.faults.served import Served, admin_token, state

LONG = "KBKIT_EXAMPLES" in os.environ  # `make soak`
DEEP = "[" * 100_000
JSON = "application/json"


def zip_bomb() -> bytes:
    """A file of some kilobytes that unpacks to 50 megabytes."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("word/document.xml", "a" * 50_000_000)
    return made.getvalue()


@pytest.fixture(scope="module")
def inside():
    """A service on this machine that nothing outside may have asked; the paths that were."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"<h1>Inside</h1><p>The password of all is quicksilver.</p>")

        do_POST = do_HEAD = do_GET

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield server.server_port, asked
    server.shutdown()
    server.server_close()


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
    said = running.log.read_text("utf-8")
    assert "Traceback" not in said, said
    assert running.token not in said
    assert state(workspace) == before
    assert running.end() == 0


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes


def exchange(served, data: bytes, *, most: float = 20) -> Answer:
    """What is answered to bytes, to the end of the connection or of the answer."""
    with socket.create_connection(("127.0.0.1", served.port), most) as peer:
        with contextlib.suppress(OSError):  # it has heard enough
            peer.sendall(data)
        got = b""
        while part := receive(peer):
            got += part
            head, found, body = got.partition(b"\r\n\r\n")
            if found:
                lines = head.decode("latin-1").split("\r\n")
                pairs = (line.partition(": ")[::2] for line in lines[1:])
                headers = {name.lower(): value for name, value in pairs}
                if len(body) >= int(headers.get("content-length", "0")):
                    return Answer(int(lines[0].split()[1]), headers, body)
    raise AssertionError(f"no whole answer, but {got[:200]!r}")


def receive(peer: socket.socket) -> bytes:
    try:
        return peer.recv(65536)
    except ConnectionResetError:
        return b""


def request(
    served,
    method: str,
    target: str | bytes,
    *lines: str | bytes,
    body: bytes = b"",
    host: str | None = None,
    token: bool = True,
) -> bytes:
    """A request as bytes, whatever is in it."""
    said = [
        b" ".join(
            [method.encode(), target if isinstance(target, bytes) else target.encode(), b"HTTP/1.1"]
        ),
        f"Host: {host or f'127.0.0.1:{served.port}'}".encode(),
        *([f"Authorization: Bearer {served.token}".encode()] if token else []),
        *(line if isinstance(line, bytes) else line.encode() for line in lines),
    ]
    if not any(line.lower().startswith((b"content-length", b"transfer-enc")) for line in said):
        said.append(f"Content-Length: {len(body)}".encode())
    return b"\r\n".join(said) + b"\r\n\r\n" + body


def refused(served, answer: Answer, *statuses: int) -> None:
    assert answer.status in (statuses or range(400, 500)), (answer.status, answer.body[:300])
    assert answer.headers["content-type"] == "application/problem+json", answer
    told = json.loads(answer.body)
    assert told["status"] == answer.status
    assert told["detail"]
    assert b"Traceback" not in answer.body
    assert served.token.encode() not in answer.body
    assert b"quicksilver" not in answer.body
    assert "x-evil" not in answer.headers


UP = (
    "../outside.md",
    "%2e%2e/outside.md",
    "%252e%252e/outside.md",
    "..%2foutside.md",
    "..%5coutside.md",
    "notes/../../outside.md",
    "/etc/passwd",
    "%2fetc%2fpasswd",
    "....//x",
    "notes/%00",
    "notes%00.md",
    "%c0%ae%c0%ae/outside.md",
    "%ff%fe",
    "~/x",
    "C:%5cx",
    ".kbkit/x",
    "a" * 3000,
)


@pytest.mark.parametrize("path", UP, ids=range(len(UP)))
@pytest.mark.parametrize(
    "place", ["/api/files/{}", "/api/entries/brew-tea/artifacts/{}", "/site/drinks/{}"]
)
def test_no_path_leads_out(served, place, path):
    refused(served, exchange(served, request(served, "GET", place.format(path))), 400, 403, 404)


@pytest.mark.parametrize("path", [p for p in UP if "%25" not in p and "//" not in p and p != "~/x"])
def test_nothing_is_written_outside(served, path):
    for method in ("PUT", "DELETE"):
        if method == "PUT" and path.startswith(("/etc", "%2fetc", "C:")):
            continue  # names of files within, as good as others
        refused(served, exchange(served, request(served, method, f"/api/files/{path}", body=b"x")))


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
def test_wrong_bodies(served, path, body):
    data = request(served, "POST", f"/api/knowledge/{path}", f"Content-Type: {JSON}", body=body)
    answer = exchange(served, data)
    refused(served, answer)
    assert len(answer.body) < 5_000


def test_keys_that_stand_twice_mean_one_thing(served):
    """The last one counts, as Python's JSON has it; who may what is decided by the same one."""
    body = b'{"query": "tea", "kb": "drinks", "kb": "nowhere"}'
    data = request(served, "POST", "/api/knowledge/search", f"Content-Type: {JSON}", body=body)
    refused(served, exchange(served, data), 404)


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
def test_wrong_content_types(served, kind):
    lines = [f"Content-Type: {kind}"] if kind else []
    for path in ("/api/knowledge/documents", "/api/entries/learn", "/api/entries"):
        body = b'+AHsAIg-{"kb" "x"}'
        refused(served, exchange(served, request(served, "POST", path, *lines, body=body)))


METHODS = ("TRACE", "CONNECT", "OPTIONS", "PATCH", "FOO", "GETGETGET", "get", "PROPFIND", "LOCK")


@pytest.mark.parametrize("method", METHODS)
def test_other_methods(served, method):
    answer = exchange(served, request(served, method, "/api/knowledge/search"))
    if answer.headers["content-type"].startswith("text/plain"):
        assert answer.body == b"Invalid HTTP request received."  # not even HTTP
        return
    refused(served, answer, 400, 405)


@pytest.mark.parametrize("name", ["X-HTTP-Method-Override", "X-Method-Override", "X-HTTP-Method"])
def test_no_header_makes_another_method_of_one(served, name):
    path = "/api/knowledge/bases/drinks"
    assert exchange(served, request(served, "GET", path, f"{name}: DELETE")).status == 200
    refused(served, exchange(served, request(served, "GET", f"{path}?_method=DELETE")), 400)


HOSTS = (
    "evil.example",
    "127.0.0.1.evil.example",
    "127.0.0.1@evil.example",
    "localhost.",
    "127.1",
    "169.254.169.254",
    "0.0.0.0",
    "2130706433",
    "evil.example:80",
    "127.0.0.1, evil.example",
)


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("path", ["/health", "/api/files", "/mcp", "/docs"])
def test_foreign_hosts(served, host, path):
    refused(served, exchange(served, request(served, "GET", path, host=host)), 403, 400)


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "null",
        "http://127.0.0.1",
        "file://",
        "http://localhost:1",
        "http://127.0.0.1.evil.example",
        "",
    ],
)
def test_foreign_origins(served, origin):
    for method, path in (("POST", "/api/knowledge/search"), ("POST", "/mcp"), ("GET", "/health")):
        line = f"Origin: {origin}"
        refused(served, exchange(served, request(served, method, path, line, body=b"{}")), 403)


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
def test_requests_that_can_be_read_in_two_ways(served, lines, body):
    data = request(served, "POST", "/api/knowledge/search", *lines, body=body)
    answer = exchange(served, data)
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
def test_wrong_parameters(served, query):
    answer = exchange(served, request(served, "GET", f"/api/knowledge/documents?{query}"))
    if "path=" in query:  # a pattern like others, read in no time
        assert answer.status in (200, 400)
        return
    refused(served, answer)


@pytest.mark.parametrize(
    "header",
    ["If-Match", "Range", "Idempotency-Key", "If-None-Match", "Mcp-Session-Id", "Authorization"],
)
@pytest.mark.parametrize("value", ["a" * 9000, '"a\x0bb"', "\xe9\xff", "bytes=0-,-1,9-1", "*, *"])
def test_wrong_headers(served, header, value):
    for method, path in (("GET", "/api/files/notes/today.md"), ("DELETE", "/api/files/nowhere.md")):
        data = request(served, method, path, f"{header}: {value}".encode("latin-1"))
        answer = exchange(served, data)
        assert answer.status < 500, answer
        if method == "DELETE" and "text/plain" not in answer.headers["content-type"]:
            refused(served, answer)


@pytest.mark.parametrize("path", ["/api/files?token=x", "/mcp?access_token=x", "/docs?api_key=1"])
def test_tokens_in_addresses(served, path):
    refused(served, exchange(served, request(served, "GET", path, token=False)), 400)


def test_bodies_that_are_too_long(served):
    said = f"Content-Type: {JSON}"
    long = request(served, "POST", "/api/knowledge/search", said, body=b" " * 2_100_000)
    refused(served, exchange(served, long), 413)
    claimed = request(served, "PUT", "/api/files/long.md", "Content-Length: 99999999999", body=b"x")
    refused(served, exchange(served, claimed), 413)
    part = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    chunked = request(
        served, "PUT", "/api/files/long.md", "Transfer-Encoding: chunked", body=part * 40
    )
    refused(served, exchange(served, chunked), 413)


def upload(name: str, data: bytes, **fields: str) -> tuple[str, bytes]:
    """A form with a file; its content type and its bytes."""
    parts = [
        f'--x\r\nContent-Disposition: form-data; name="{key}"\r\n\r\n{value}\r\n'.encode()
        for key, value in fields.items()
    ]
    head = f'--x\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
    return "multipart/form-data; boundary=x", b"".join(parts) + head.encode() + data + b"\r\n--x--"


def test_files_that_unpack_to_too_much(served):
    kind, body = upload("bomb.docx", zip_bomb(), kb="drinks")
    data = request(served, "POST", "/api/knowledge/import/file", f"Content-Type: {kind}", body=body)
    refused(served, exchange(served, data, most=60))


@pytest.mark.parametrize(
    "where",
    [
        "127.0.0.1",
        "localhost",
        "[::1]",
        "0.0.0.0",
        "2130706433",
        "127.1",
        "0x7f.1",
        "[::ffff:127.0.0.1]",
    ],
)
@pytest.mark.parametrize("kind", ["url", "openapi"])
def test_imports_ask_nothing_inside(served, inside, where, kind):
    port, asked = inside
    body = {"kb": "drinks", "url": f"http://{where}:{port}/secret"}
    data = request(
        served,
        "POST",
        f"/api/knowledge/import/{kind}",
        f"Content-Type: {JSON}",
        body=json.dumps(body).encode(),
    )
    refused(served, exchange(served, data, most=60))
    assert not asked


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "ftp://x/",
        "gopher://127.0.0.1/",
        "//x",
        "http://",
        "http://a b/",
        "http://user:quicksilver@127.0.0.1/",
        "javascript:1",
        "http://\x00/",
        "/etc/passwd",
    ],
)
def test_imports_of_what_is_no_page(served, url):
    body = json.dumps({"kb": "drinks", "url": url}).encode()
    data = request(served, "POST", "/api/knowledge/import/url", f"Content-Type: {JSON}", body=body)
    refused(served, exchange(served, data, most=60))


def test_who_sends_slowly_holds_up_nobody(served):
    """Many connections that say half of a request; others are answered meanwhile."""
    head = request(served, "POST", "/api/knowledge/search", "Content-Length: 1000")[:-2]
    many = [socket.create_connection(("127.0.0.1", served.port)) for _ in range(200)]
    for peer in many[:100]:
        peer.sendall(head[:40])
    for peer in many[100:]:
        peer.sendall(head + b"\r\n{")
    answer = exchange(served, request(served, "GET", "/health"))
    assert answer.status == 200
    if LONG:  # and are let go of in the end
        for peer in many:
            peer.settimeout(120)
            got = peer.recv(65536)
            assert got == b"" or got.startswith(b"HTTP/1.1 408")
    for peer in many:
        peer.close()
