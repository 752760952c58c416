"""A quiet web server for a folder, on the loopback interface only."""

import os
import re
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from kbkit.errors import ConfigError

LOOPBACK = "127.0.0.1"
_OWN_NAMES = frozenset({LOOPBACK, "localhost", "[::1]"})


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens on an address; port 0 is any free one."""
    listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(512)
    except (OSError, OverflowError, UnicodeError) as error:
        listening.close()
        raise ConfigError(
            f"{host}:{port}: cannot be used ({error}); choose another port, or 0 for any"
        ) from error
    return listening


class _FolderServer(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = os.name != "nt"  # on Windows two servers could share a port

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that closed the connection."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class _Handler(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(
        self, *args: Any, on_request: Callable[[str], None] = lambda path: None, **options: Any
    ) -> None:
        self._on_request = on_request
        super().__init__(*args, **options)  # answers the requests

    def parse_request(self) -> bool:
        if not super().parse_request():
            return False
        host, port = self.headers.get("Host", LOOPBACK), self.connection.getsockname()[1]
        # protects from DNS rebinding
        if host.strip().lower() not in _OWN_NAMES | {f"{name}:{port}" for name in _OWN_NAMES}:
            self.send_error(HTTPStatus.MISDIRECTED_REQUEST, "not a name of this machine")
            return False
        self._on_request(self.path)
        return True

    def send_head(self) -> Any:
        parts = re.split(r"[/\\]", unquote(re.split(r"[?#]", self.path)[0]))
        if any((part.startswith(".") and part != ".well-known") or "\0" in part for part in parts):
            self.send_error(HTTPStatus.NOT_FOUND)
            return None
        return super().send_head()

    def log_message(self, format: str, *args: object) -> None:
        pass

    def list_directory(self, path: object) -> None:
        self.send_error(404)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        page = Path(self.directory) / "404.html"
        if code != HTTPStatus.NOT_FOUND or not page.is_file():
            super().send_error(code, message, explain)
            return
        body = page.read_bytes()
        self.send_response(code)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def end_headers(self) -> None:
        """Send headers: revalidate files, never guess content types."""
        self.send_header("Cache-Control", "no-cache")
        self.send_header("X-Content-Type-Options", "nosniff")
        super().end_headers()


@contextmanager
def serve_folder(
    folder: Path | str, port: int = 0, *, on_request: Callable[[str], None] = lambda path: None
) -> Iterator[str]:
    """Serve a folder on loopback while the block runs.

    Refuses requests for another ``Host`` and for names with a leading dot. Supports
    ``Last-Modified`` and 304.

    Args:
        folder: Folder to serve.
        port: Port on 127.0.0.1; 0 for a free one.
        on_request: Called with the path of each request, from the server's threads.

    Yields:
        The base URL, ending in ``/``.

    Raises:
        ConfigError: There is no such folder, or the port is taken.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise ConfigError(f"{folder}: not a folder; name one that exists")
    handler = partial(_Handler, directory=str(folder), on_request=on_request)
    try:
        server = _FolderServer((LOOPBACK, port), handler)
    except (OSError, OverflowError) as error:
        raise ConfigError(
            f"port {port} of {LOOPBACK} cannot be used ({error}); "
            "choose another, or 0 for a free one"
        ) from error
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://{LOOPBACK}:{server.server_address[1]}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
