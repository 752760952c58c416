"""`kbkit serve` and `kbkit token` as commands."""

import json
import re
import signal
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager
from functools import partial

import httpx
import pytest

import kbkit
from kbkit.runtime.web_server import serve_folder

COMMAND = [sys.executable, "-m", "kbkit"]


@contextmanager
def served(folder, *options, ignore=False):
    """A server in a process of its own, and its address."""
    command = [*COMMAND, "--workspace", str(folder), "serve", "--port", "0", *options]
    command.append("--until-stdin-closes")
    if ignore:  # as a shell starts what runs in its background
        command = ["sh", "-c", "trap '' INT; exec \"$@\"", "sh", *command]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    process = subprocess.Popen(command, text=True, **pipes)
    try:
        line = process.stderr.readline()
        found = re.search(r"serving .* at (http://\S+) ", line)
        assert found, line + process.stderr.read()
        yield process, found[1]
    finally:
        process.kill()
        process.communicate()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("serving") / "kb"
    with kbkit.open(folder) as workspace:
        workspace.create("drinks").add("Tea", "Steep tea for two minutes.")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.soak)]
)
def test_signal_ends_a_server_after_its_requests(folder, number):
    with served(folder, ignore=number == signal.SIGINT) as (process, url):
        host, port = url.removeprefix("http://").split(":")
        body = b"# Late\n\nwritten while the server ends"
        with (
            socket.create_connection((host, int(port)), 30) as peer,
            httpx.Client(base_url=url, timeout=30) as client,
        ):
            # A request of which half of the body has arrived
            peer.sendall(
                b"PUT /api/files/%d.md HTTP/1.1\r\nHost: localhost\r\n"
                b"Content-Type: text/markdown\r\nContent-Length: %d\r\n\r\n"
                % (number, len(body))
                + body[:5]
            )
            client.get("/health").raise_for_status()  # the server knows the other one by now
            process.send_signal(number)
            with pytest.raises(httpx.HTTPError):  # noqa: PT012 - it takes none from some time on
                while True:
                    client.get("/health")
            peer.sendall(body[5:])
            answer = peer.recv(65536).decode()
            assert answer.startswith(("HTTP/1.1 200", "HTTP/1.1 201", "HTTP/1.1 204")), answer
        assert process.wait(30) == 0
        assert process.stderr.read() == ""
    with kbkit.open(folder) as workspace:
        assert workspace.files.read(f"{int(number)}.md").encode() == body


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--host", "0.0.0.0"], "others can reach it, and no token protects it"),
        (["--host", "localhost", "--port", "{taken}"], "choose another port"),
        (["--tools", "nothing"], "nothing"),
        (["--max-tokens", "100"], "400"),
        (["--public-url", "kb.example"], "--public-url 'kb.example': give one"),
        (["--allow-origin", "*"], "--allow-origin '*': give one such as https://kb.example"),
    ],
)
def test_invalid_options_of_serve_are_refused(folder, run_kbkit, options, message):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        arguments = [option.replace("{taken}", port) for option in options]
        refused = run_kbkit("--workspace", folder, "serve", *arguments)
    assert refused.code in (1, 2)
    assert message in refused.err


def test_tokens_are_created_listed_and_revoked(tmp_path, run_kbkit):
    run = partial(run_kbkit, "--workspace", tmp_path / "kb", "token")
    created = run("create", "ann", "--scope", "write", "--days", "30", "--kb", "files")
    assert re.fullmatch(r"kbkit_[0-9a-f]{12}_[\w-]{43}\n", created.out), created
    assert "it is not shown again" in created.err
    listed = run("list").out
    assert "ann" in listed
    assert created.out.strip()[-43:] not in listed
    (token,) = run("list", "--json").json
    assert (token["name"], token["scope"], token["kbs"]) == ("ann", "write", ["files"])
    created = run("create", "bob", "--json").json
    assert created["token"].startswith(f"kbkit_{created['id']}_")
    assert run("revoke", "ann").code == 0
    assert "no token 'ann'; there are bob" in run("revoke", "ann").err


@pytest.fixture
def site(tmp_path):
    """A site of 21 pages that stops at the fifth until it may go on; both as events."""
    links = "".join(f'<p><a href="/page{n}.html">Page {n}</a></p>' for n in range(20))
    for name in ("index", *(f"page{n}" for n in range(20))):
        (tmp_path / f"{name}.html").write_text(
            f"<html><head><title>Title {name}</title></head><body><main><h1>{name}</h1>"
            f"<p>This page, {name}, says something about gardens in a whole sentence.</p>"
            f"{links if name == 'index' else ''}</main></body></html>"
        )
    halted, go, pages = threading.Event(), threading.Event(), []

    def record(path):
        pages.extend([path] if "page" in path else [])
        if len(pages) == 5:
            halted.set()
            go.wait(60)

    with serve_folder(tmp_path, on_request=record) as address:
        yield address, halted, go
        go.set()


@pytest.mark.soak
def test_import_of_a_killed_server_is_resumed_by_the_next(folder, site):
    address, halted, go = site
    crawl = {"kb": "drinks", "crawl": True, "limit": 12, "allow_private": True, "url": address}

    def begin(url):
        headers = {"Idempotency-Key": "once"}
        return httpx.post(
            f"{url}/api/knowledge/import/url", json=crawl, headers=headers, timeout=60
        )

    with served(folder) as (process, url):
        begun = begin(url)
        assert begun.status_code == 202, begun.text
        assert halted.wait(60)
        process.kill()
        go.set()
    with served(folder) as (process, url):
        assert begin(url).headers["location"] == begun.headers["location"], "it is not begun again"
        with httpx.stream("GET", f"{url}{begun.headers['location']}/events", timeout=60) as stream:
            *_, last = (line for line in stream.iter_lines() if line.startswith("data: "))
        job = json.loads(last.removeprefix("data: "))
        assert (job["state"], job["attempts"]) == ("done", 2), job
        # Its parent and its terminal are gone
        process.stderr.close()
        process.stdout.close()
        process.stderr = process.stdout = None
        assert httpx.get(f"{url}/api/nothing").status_code == 404
        process.send_signal(signal.SIGHUP)
        assert process.wait(60) == 0
    with kbkit.open(folder) as workspace:
        assert workspace["drinks"].info().documents == 1 + 12, "Tea, and the pages"
