"""The transport: errors of a server are those of Python, and only what may be is sent again."""

import asyncio
import json
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest

import kbkit
from kbkit import errors
from kbkit.bundles.writer import NewFile
from kbkit.client.calls import Blocking, Request, reads_json, reads_nothing, steps
from kbkit.client.transport import AsyncTransport, Transport
from kbkit.server import ServerSettings, problems, running


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    with (
        kbkit.open(tmp_path_factory.mktemp("transport") / "kb") as workspace,
        running(workspace, ServerSettings(port=0)) as address,
    ):
        yield address


def test_a_server_says_how_it_is(url):
    with kbkit.connect(url) as workspace:
        assert workspace.health() == {"status": "ok", "version": kbkit.__version__}


def test_calls_are_awaited_likewise(url):
    async def ask():
        transport = AsyncTransport(url)
        try:
            return await transport.send(Request("GET", "/health", reads_json))
        finally:
            await transport.close()

    assert asyncio.run(ask())["status"] == "ok"


def test_several_calls_are_sent_one_after_the_other_and_may_mend_a_failure(url):
    class Calls(Blocking):
        @steps
        def both(self):
            first = yield Request("GET", "/health", reads_json)
            try:
                yield Request("GET", "/nowhere", reads_nothing)
            except errors.NotFoundError as error:
                second = yield Request("GET", "/health", reads_json)
                return first, str(error), second

    transport = Transport(url)
    first, said, second = Calls(transport).both()
    assert first == second
    assert said == "/nowhere: no such address; /docs lists all"
    transport.close()


@pytest.mark.parametrize(
    "error",
    [
        errors.NotFoundError("no document 'a'"),
        errors.NotUniqueError("stands there 3 times", 3),
        errors.EntryFormatError("skill.yaml:3: no", 3, 4),
        errors.RecipeError(["a:1: name: missing", "a:2: x: unknown"]),
        errors.VersionConflictError("changed meanwhile"),
        errors.LimitError("too many", 7),
    ],
)
def test_an_error_comes_back_as_it_was_raised(error):
    told = problems.problem_of(error)
    response = httpx.Response(
        told.status_code,
        content=told.body,
        headers=dict(told.headers),
        request=httpx.Request("GET", "http://a"),
    )
    from kbkit.client.transport import error_of

    back = error_of(response)
    assert type(back) is type(error)
    assert str(back) == str(error)
    assert vars(back) == vars(error)


def test_every_error_of_kbkit_has_a_status():
    kinds = {
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, errors.KbkitError)
    }
    assert len(kinds) > 30
    for kind in kinds:
        error = kind.__new__(kind, "x")
        assert 400 <= problems.status_of(error) < 600


@pytest.mark.slow
def test_only_what_may_be_is_sent_again():
    seen = []

    def refuse(request):
        seen.append(request.method)
        return httpx.Response(503, request=request)

    transport = Transport("http://127.0.0.1:9")
    transport._client = httpx.Client(
        transport=httpx.MockTransport(refuse), base_url="http://127.0.0.1:9"
    )
    for method in ("GET", "POST"):
        with pytest.raises(errors.ServerError):
            transport.send(Request(method, "/", reads_nothing))
    with pytest.raises(errors.ServerError):
        transport.send(Request("POST", "/", reads_nothing, headers={"Idempotency-Key": "k"}))
    assert seen == ["GET"] * 3 + ["POST"] + ["POST"] * 3


def test_what_was_cut_off_on_its_way_into_a_file_is_fetched_anew(tmp_path):
    asked = []

    class Cutting(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(200)
            self.send_header("Content-Length", "10")
            self.end_headers()
            self.wfile.write(b"wrong" if len(asked) == 1 else b"0123456789")
            self.close_connection = True

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Cutting) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        transport = Transport(f"http://127.0.0.1:{server.server_port}")
        with NewFile(tmp_path / "whole") as file:
            transport.send(Request("GET", "/file", reads_nothing, into=file))
            file.finish()
        transport.close()
        server.shutdown()
        thread.join()
    assert asked == ["/file", "/file"]
    assert (tmp_path / "whole").read_bytes() == b"0123456789"


def test_who_asked_too_often_asks_again_when_told():
    seen = []

    def answer(request):
        seen.append(request.method)
        status = 429 if len(seen) < 3 else 200
        return httpx.Response(status, headers={"Retry-After": "0"}, json={}, request=request)

    transport = Transport("http://127.0.0.1:9")
    transport._client = httpx.Client(
        transport=httpx.MockTransport(answer), base_url="http://127.0.0.1:9"
    )
    assert transport.send(Request("POST", "/", reads_json)) == {}
    assert seen == ["POST"] * 3


def test_nobody_there_is_one_clear_error():
    with pytest.raises(errors.ServerError, match=r"cannot be reached .* is `kbkit serve` running"):
        kbkit.connect("http://127.0.0.1:9").health()


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("127.0.0.1:8765", "not an address of a server"),
        ("ftp://a", "not an address of a server"),
        ("http://a:b@c/", "give a token as token="),
        ("http://a/?token=x", "give a token as token="),
    ],
)
def test_what_is_no_address_is_refused(url, said):
    with pytest.raises(errors.ConfigError, match=said):
        kbkit.connect(url)


def test_a_token_that_would_end_a_header_is_refused():
    with pytest.raises(errors.ConfigError, match="has characters that no token has"):
        kbkit.connect("http://127.0.0.1:9", token="a\r\nX: b")


def test_the_client_loads_values_errors_httpx_and_pydantic_only():
    code = (
        "import sys, kbkit, json\n"
        "workspace = kbkit.connect('http://127.0.0.1:9')\n"
        "json.dump(sorted(sys.modules), sys.stdout)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(json.loads(run.stdout))
    rooms = {name.split(".")[1] for name in loaded if name.startswith("kbkit.")}
    assert rooms <= {
        "base_plots",
        "client",
        "entries",
        "errors",
        "extras",
        "files",
        "globs",
        "lazy",
        "graph",
        "models",
        "recipes",
        "regular_files",
        "runtime",
    }
    runtime = {name for name in loaded if name.startswith("kbkit.runtime.")}
    assert runtime == {"kbkit.runtime.validation"}
    tops = {name.partition(".")[0] for name in loaded}
    assert "httpx" in tops
    assert not tops & {"numpy", "pandas", "sqlalchemy", "chromadb", "yaml", "fastapi", "mcp"}
