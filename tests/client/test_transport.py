"""Errors, retries and dependencies of the transport."""

import json
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest

import kbkit
from kbkit import errors
from kbkit.client.calls import Blocking, Request, Transport, error_named, error_of, steps
from kbkit.client.declared import reads_nothing
from kbkit.server import ServerSettings, running
from kbkit.server import responses as problems


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    with (
        kbkit.open(tmp_path_factory.mktemp("transport") / "kb") as workspace,
        running(workspace, ServerSettings(port=0)) as address,
    ):
        yield address


def mocked(handler):
    """Create a transport whose requests a function answers."""
    transport = Transport("http://127.0.0.1:9")
    mock = httpx.MockTransport(handler)
    transport._client = httpx.Client(transport=mock, base_url="http://127.0.0.1:9")
    return transport


def test_health_of_a_server(url):
    with kbkit.connect(url) as workspace:
        assert workspace.health() == {"status": "ok", "version": kbkit.__version__}


def test_steps_may_handle_an_error_of_a_request(url):
    class Calls(Blocking):
        @steps
        def both(self):
            first = yield Request("GET", "/health", httpx.Response.json)
            try:
                yield Request("GET", "/nowhere", reads_nothing)
            except errors.NotFoundError as error:
                second = yield Request("GET", "/health", httpx.Response.json)
                return first, str(error), second

    transport = Transport(url)
    first, message, second = Calls(transport).both()
    assert first == second
    assert message == "/nowhere: no such address; /docs lists all"
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
def test_error_is_raised_as_on_the_server(error):
    sent = problems.problem_of(error)
    request = httpx.Request("GET", "http://a")
    headers = dict(sent.headers)
    back = error_of(
        httpx.Response(sent.status_code, content=sent.body, headers=headers, request=request)
    )
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
        error = error_named(kind.__name__, "x")
        assert 400 <= problems.problem_of(error).status_code < 600


@pytest.mark.slow
def test_only_idempotent_requests_are_repeated():
    seen = []

    def refuse(request):
        seen.append(request.method)
        return httpx.Response(503, request=request)

    transport = mocked(refuse)
    for method in ("GET", "POST"):
        with pytest.raises(errors.ServerError):
            transport.send(Request(method, "/", reads_nothing))
    with pytest.raises(errors.ServerError):
        transport.send(Request("POST", "/", reads_nothing, headers={"Idempotency-Key": "k"}))
    assert seen == ["GET"] * 3 + ["POST"] + ["POST"] * 3


def test_interrupted_download_is_repeated():
    requested = []

    class Cutting(BaseHTTPRequestHandler):
        def do_GET(self):
            requested.append(self.path)
            self.send_response(200)
            self.send_header("Content-Length", "10")
            self.end_headers()
            self.wfile.write(b"wrong" if len(requested) == 1 else b"0123456789")
            self.close_connection = True

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Cutting) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        transport = Transport(f"http://127.0.0.1:{server.server_port}")
        whole = transport.send(Request("GET", "/file", lambda response: response.content))
        transport.close()
        server.shutdown()
        thread.join()
    assert requested == ["/file", "/file"]
    assert whole == b"0123456789"


def test_rate_limited_request_is_repeated_after_the_given_time():
    seen = []

    def answer(request):
        seen.append(request.method)
        status = 429 if len(seen) < 3 else 200
        return httpx.Response(status, headers={"Retry-After": "0"}, json={}, request=request)

    assert mocked(answer).send(Request("POST", "/", httpx.Response.json)) == {}
    assert seen == ["POST"] * 3


def test_unreachable_server_is_an_error():
    with pytest.raises(errors.ServerError, match=r"cannot be reached .* is `kbkit serve` running"):
        kbkit.connect("http://127.0.0.1:9").health()


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("127.0.0.1:8765", "not an address of a server"),
        ("ftp://a", "not an address of a server"),
        ("http://a:b@c/", "give a token as token="),
        ("http://a/?token=x", "give a token as token="),
    ],
)
def test_invalid_address_is_refused(url, message):
    with pytest.raises(errors.ConfigError, match=message):
        kbkit.connect(url)


@pytest.mark.parametrize("seconds", [0, -1.0])
def test_timeout_must_be_above_0(seconds):
    with pytest.raises(errors.ConfigError, match=f"timeout={seconds}: give a number of seconds"):
        kbkit.connect("http://127.0.0.1:9", timeout=seconds)


def test_token_with_control_characters_is_refused():
    with pytest.raises(errors.ConfigError, match="has characters that no token has"):
        kbkit.connect("http://127.0.0.1:9", token="a\r\nX: b")


def test_client_imports_few_modules():
    code = (
        "import sys, kbkit, json\n"
        "workspace = kbkit.connect('http://127.0.0.1:9')\n"
        "json.dump(sorted(sys.modules), sys.stdout)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(json.loads(run.stdout))
    allowed = "base_plots client entries errors extras files graph models paths recipes"
    packages = {name.split(".")[1] for name in loaded if name.startswith("kbkit.")}
    assert packages <= {*allowed.split(), "runtime"}
    runtime = {name for name in loaded if name.startswith("kbkit.runtime.")}
    assert runtime == {"kbkit.runtime.validation"}
    tops = {name.partition(".")[0] for name in loaded}
    assert "httpx" in tops
    assert not tops & {"numpy", "pandas", "sqlalchemy", "chromadb", "yaml", "fastapi", "mcp"}
