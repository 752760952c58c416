"""Sites on loopback, whose pages a test writes."""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


class Site:
    """Pages by path: text, or a function that gets the request handler and answers itself."""

    def __init__(self) -> None:
        self.pages: dict[str, str | bytes | Callable[[BaseHTTPRequestHandler], None]] = {}
        self.headers: dict[str, dict[str, str]] = {}
        self.paths: list[str] = []
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.lock = threading.Lock()
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                with site.lock:
                    site.paths.append(self.path)
                    site.requests.append((self.path, dict(self.headers)))
                page = site.pages.get(self.path)
                if callable(page):
                    self.close_connection = True
                    page(self)
                    return
                status = 404 if page is None else 200
                body = page.encode() if isinstance(page, str) else page
                body = b"nothing here" if body is None else body
                headers = {"Content-Type": "text/html; charset=utf-8"}
                headers |= site.headers.get(self.path, {})
                etag = headers.get("ETag")
                if etag and self.headers.get("If-None-Match") == etag:
                    status, body = 304, b""
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request: object, client_address: object) -> None:
                pass  # clients that hang up are part of the tests

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def count(self, path: str) -> int:
        return self.paths.count(path)

    def link(self, links: Mapping[str, Iterable[str]], *leaves: str) -> None:
        """Write pages with links, and others without; each is titled by its path."""
        for path, targets in {**links, **dict.fromkeys(leaves, ())}.items():
            self.pages[path] = write_page(path, *targets)


@contextmanager
def served() -> Iterator[Site]:
    site = Site()
    thread = threading.Thread(target=site.server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield site
    site.server.shutdown()
    site.server.server_close()


@pytest.fixture
def site() -> Iterator[Site]:
    """An empty site: every page is a 404 until the test writes it."""
    with served() as site:
        yield site


@pytest.fixture
def other_site() -> Iterator[Site]:
    """Another site, on a port of its own."""
    with served() as site:
        yield site


def write_page(title: str, *links: str, head: str = "", text: str = "") -> str:
    """A page with a title, some text and links."""
    anchors = " ".join(f'<a href="{link}">{link}</a>' for link in links)
    prose = text or f"This page is about {title}, and says so in a whole sentence."
    return (
        f"<html><head><title>{title} - Site</title>{head}</head><body><main>"
        f"<h1>{title}</h1><p>{prose}</p><p>{anchors}</p></main></body></html>"
    )


@pytest.fixture
def page() -> Callable[..., str]:
    return write_page


class Silence:
    """Answers nothing until the test ends."""

    def __init__(self) -> None:
        self.over = threading.Event()
        self.expired = False

    def __call__(self, handler: BaseHTTPRequestHandler) -> None:
        self.expired |= not self.over.wait(60)


@pytest.fixture
def silence() -> Iterator[Silence]:
    """A page that never answers; nobody may wait a minute for it."""
    silence = Silence()
    yield silence
    silence.over.set()
    assert not silence.expired
