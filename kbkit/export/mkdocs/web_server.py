"""A quiet web server for a built site, reachable from this machine only."""

from __future__ import annotations

from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from kbkit.errors import ExportError

LOOPBACK = "127.0.0.1"


class _QuietHandler(SimpleHTTPRequestHandler):
    """Serves files, says nothing, and lists no folders."""

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def list_directory(self, path: object) -> None:
        """Refuse: a site has index pages, and what has none is not meant to be listed."""
        self.send_error(404)

    def end_headers(self) -> None:
        """Let browsers ask again after the next build, and never guess content types."""
        self.send_header("Cache-Control", "no-cache")
        self.send_header("X-Content-Type-Options", "nosniff")
        super().end_headers()


def open_server(directory: Path, port: int = 0) -> ThreadingHTTPServer:
    """Bind a server to the loopback address; call its ``serve_forever`` to run it.

    Args:
        directory: Folder of a built site.
        port: Port, or 0 for any free one; ``server_address[1]`` tells which.

    Raises:
        ExportError: There is no site in the folder, or the port is taken.
    """
    if not (directory / "index.html").is_file():
        raise ExportError(f"{directory}: no site here (index.html is missing); export one first")
    handler = partial(_QuietHandler, directory=str(directory))
    try:
        return ThreadingHTTPServer((LOOPBACK, port), handler)
    except (OSError, OverflowError) as error:
        raise ExportError(
            f"port {port}: cannot be used ({error}); choose another one, or 0 for any"
        ) from error


def serve(directory: Path, port: int) -> None:
    """Serve a built site on ``http://127.0.0.1:port/`` until interrupted.

    Raises:
        ExportError: There is no site in the folder, or the port is taken.
    """
    with open_server(directory, port) as server:
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return
