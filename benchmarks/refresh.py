"""Time of refreshing an unchanged site, as a share of its first build.

Real documentation pages are served on loopback by their own process and read with ``kbkit new`` and
then ``kbkit refresh``, each a fresh process. The site is served in four ways: with both validators,
with either of them, and with none; then every page is sent again and only its bytes show that
nothing changed.

Run from the project's root: ``python benchmarks/refresh.py [PAGES [MODE ...]]``. The pages come
from Debian packages (python-django-doc, python-flask-doc, nodejs-doc, debian-policy, sqlite3-doc).
The table is also written to ``build/bench/refresh.md``.
"""

from __future__ import annotations

import email.utils
import hashlib
import json
import multiprocessing
import shutil
import subprocess
import sys
import tempfile
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from pathlib import Path

from _corpora import report

DOCS = Path("/usr/share/doc")
CORPORA = ("python-django-doc/html", "python-flask-doc/html", "nodejs", "debian-policy", "sqlite3")
MODES = {
    "ETag and Last-Modified": ("etag", "modified"),
    "ETag only": ("etag",),
    "Last-Modified only": ("modified",),
    "no validators": (),
}
BAR = 0.10


def collect(most: int) -> dict[str, bytes]:
    """Return the pages of a site by path: an index, and documentation of several kinds."""
    found: dict[str, bytes] = {}
    for corpus in CORPORA:
        folder = DOCS / corpus
        for path in sorted(path for path in folder.rglob("*.html") if path.is_file()):
            if len(found) == most - 1:
                break
            inside = path.relative_to(folder).as_posix()
            found[f"/{corpus.split('/')[0]}/{inside}"] = path.read_bytes()
    links = "".join(f'<li><a href="{path}">{path}</a></li>' for path in found)
    head = "<html><head><title>All pages</title></head><body><main><h1>All pages</h1>"
    found["/"] = f"{head}<p>Documentation of several projects.</p><ul>{links}</ul></main>".encode()
    return found


def serve(pages: dict[str, bytes], validators: tuple[str, ...], pipe: Connection) -> None:
    """Serve pages until killed; sends the port."""
    modified = email.utils.formatdate(time.time() - 86_400, usegmt=True)
    etags = {path: f'"{hashlib.sha256(body).hexdigest()[:16]}"' for path, body in pages.items()}

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            body = pages.get(self.path, b"")
            status = 200 if body else 404
            headers = {"Content-Type": "text/html; charset=utf-8"}
            if body and "etag" in validators:
                headers["ETag"] = etags[self.path]
                if self.headers.get("If-None-Match") == headers["ETag"]:
                    status = 304
            if body and "modified" in validators:
                headers["Last-Modified"] = modified
                if self.headers.get("If-Modified-Since") == modified:
                    status = 304
            if status != 200:
                body = b""
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 64

    server = Server(("127.0.0.1", 0), Handler)
    pipe.send(server.server_port)
    server.serve_forever()


def kbkit(folder: Path, *arguments: str) -> tuple[float, dict[str, object]]:
    """Run a command in its own process and return its seconds and its report."""
    command = [sys.executable, "-m", "kbkit", "--workspace", str(folder), *arguments, "--json"]
    start = time.perf_counter()
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stderr}")
    return time.perf_counter() - start, json.loads(done.stdout)


def measure(pages: dict[str, bytes], mode: str) -> str:
    """Build and refresh one site; return a row of the table."""
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.Process(target=serve, args=(pages, MODES[mode], theirs), daemon=True)
    server.start()
    folder = Path(tempfile.mkdtemp(prefix="kbkit-refresh-"))
    try:
        url = f"http://127.0.0.1:{ours.recv()}/"
        limit = str(len(pages))
        crawl = ("--crawl", url, "--limit", limit, "--allow-private")
        first, built = kbkit(folder, "new", "site", *crawl)
        runs = [kbkit(folder, "refresh", "site") for _ in range(3)]
        seconds, refreshed = min(runs, key=lambda run: run[0])
    finally:
        server.terminate()
        server.join()
        shutil.rmtree(folder, ignore_errors=True)
    ratio = seconds / first
    return (
        f"| {mode} | {built['new']:,} | {first:.1f} s | {seconds:.2f} s | {ratio:.1%} "
        f"| {refreshed['same']:,} | {refreshed['fetched']:,} "
        f"| {refreshed['new']}, {refreshed['changed']}, {refreshed['gone']} "
        f"| {refreshed['chunks_embedded']} |"
    )


def main() -> None:
    pages = collect(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
    if len(pages) < 100:
        print(f"too few pages under {DOCS}: install the documentation packages; nothing measured")
        return
    lines = [
        f"Refresh of an unchanged site of {len(pages):,} pages over loopback, best of three, as a "
        f"share of its first build (bar: {BAR:.0%})",
        "",
        "| the site sends | documents | first build | refresh | share | same | read again "
        "| new, changed, gone | embedded |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    report("refresh", [*lines, *(measure(pages, mode) for mode in sys.argv[2:] or MODES)])


if __name__ == "__main__":
    main()
