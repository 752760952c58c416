"""A Chroma server for tests, and a proxy before it."""

import http.client
import json
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path

import httpx

from tests.waiting import until

# as the program ``chroma``, which imports all of chromadb first
_RUN = "import sys, chromadb_rust_bindings as chroma; chroma.cli(['chroma', 'run', *sys.argv[1:]])"


class Server:
    """``chroma run`` on a free port of loopback, with its data in a temporary folder."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="kbkit-chroma-"))
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            self.port = found.getsockname()[1]
        self.root = f"http://127.0.0.1:{self.port}"
        self._numbers = count(1)
        self._http = httpx.Client(verify=False)
        self.start()

    def start(self) -> None:
        """Start it, and wait until it answers."""
        options = ("--host", "127.0.0.1", "--port", str(self.port), "--path", self._folder / "data")
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _RUN, *options],
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        until(self._answers)

    def _answers(self) -> bool:
        try:
            self._http.get(f"{self.root}/api/v2/heartbeat").raise_for_status()
        except httpx.TransportError:
            assert self._process.poll() is None, (self._folder / "log").read_text()
            return False
        return True

    def stop(self) -> None:
        self._process.kill()
        self._process.wait(120)

    def close(self) -> None:
        """Stop it and remove its data."""
        self.stop()
        shutil.rmtree(self._folder)

    @contextmanager
    def away(self):
        """Stop it during a block."""
        self.stop()
        try:
            yield
        finally:
            self.start()

    def database(self) -> str:
        """Create a database and return its name."""
        name = f"database{next(self._numbers)}"
        self._call("post", "", json={"name": name})
        return name

    def url(self, database: str = "") -> str:
        """Return the address of a database, by default a new one."""
        return f"{self.root}?database={database or self.database()}"

    def collections(self, database: str) -> dict[str, dict]:
        """Return the records of all collections of a database by name."""
        at = f"/{database}/collections"
        body = {"include": ["documents", "metadatas"]}
        return {
            each["name"]: self._call("post", f"{at}/{each['id']}/get", json=body)
            for each in self._call("get", at)
        }

    def drop(self, database: str, name: str) -> None:
        self._call("delete", f"/{database}/collections/{name}")

    def make(self, database: str, name: str, vector: list[float]) -> None:
        """Create a collection with a vector."""
        collection = self._call("post", f"/{database}/collections", json={"name": name})
        record = {"ids": ["strange"], "embeddings": [vector]}
        self._call("post", f"/{database}/collections/{collection['id']}/upsert", json=record)

    def _call(self, method, path, **options):
        answer = self._http.request(
            method, f"{self.root}/api/v2/tenants/default_tenant/databases{path}", **options
        )
        assert answer.is_success, answer.text
        return answer.json()


@contextmanager
def proxy(server, *, token="", certificate=None, judge=lambda path, body: None):
    """Run a proxy before a server and yield its port.

    Args:
        server: The server.
        token: Required of each request.
        certificate: Files of a certificate and its key, for TLS.
        judge: May answer a request with a status and a text, or close the connection with ``()``.
    """

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            verdict = judge(self.path, json.loads(body) if body else {})
            if token and self.headers.get("Authorization") != f"Bearer {token}":
                verdict = (401, f"not {self.headers.get('Authorization')}")
            if verdict == ():
                self.close_connection = True
                return
            if verdict is None:
                upstream = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
                headers = {"Content-Type": "application/json"}
                upstream.request(self.command, self.path, body, headers)
                answer = upstream.getresponse()
                verdict = (answer.status, answer.read().decode())
                upstream.close()
            status, text = verdict
            self.send_response(status)
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            with suppress(OSError):
                self.wfile.write(text.encode())

        do_GET = do_POST = do_PUT = do_DELETE = handle_any

        def log_message(self, *args: object) -> None:
            pass

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *args: object) -> None:
            pass

    listening = Quiet(("127.0.0.1", 0), Handler)
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        listening.socket = context.wrap_socket(listening.socket, server_side=True)
    threading.Thread(target=listening.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield listening.server_port
    finally:
        listening.shutdown()
        listening.server_close()
