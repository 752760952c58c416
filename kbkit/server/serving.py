"""Serve a workspace until a signal, then shut down cleanly."""

import gc
import socket
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress

import uvicorn
from fastapi import FastAPI

from kbkit.access import Tokens
from kbkit.errors import ConfigError
from kbkit.ingest.spans import load_splitter
from kbkit.runtime.processes import at_end
from kbkit.runtime.web_server import is_loopback, listen
from kbkit.server.app import application
from kbkit.server.mcp import http_protocol, mcp_part
from kbkit.server.settings import ServerSettings
from kbkit.stores.stores import Stores
from kbkit.workspace import Workspace, stores_of
from kbkit.workspace.processes import SWITCH_SECONDS, SearchProcesses

_GRACE_SECONDS = 60
"""Seconds that a shutdown waits for running requests."""


class _AppServer(uvicorn.Server):
    """uvicorn with exit status 0 after a signal."""

    def __init__(self, app: FastAPI, on_start: Callable[[], None]) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=http_protocol(),
                ws="none",
                lifespan="on",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=30,
                timeout_graceful_shutdown=_GRACE_SECONDS,
            )
        )
        self._closing: threading.Event = app.state.closing
        self._on_start = on_start

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._on_start()

    def end(self) -> None:
        """Shut down after running requests; a second call shuts down at once."""
        self.force_exit = self.should_exit
        self.should_exit = True
        self._closing.set()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        in_main_thread = threading.current_thread() is threading.main_thread()
        with at_end(self.end) if in_main_thread else nullcontext():
            yield


def serve(
    workspace: Workspace,
    settings: ServerSettings | None = None,
    *,
    say: Callable[[str], None] = print,
) -> None:
    """Serve a workspace until SIGINT or SIGTERM."""
    settings = settings or ServerSettings()
    app = _app(workspace, settings)
    listening = listen(settings.host, settings.port)
    url = url_of(listening)

    def announce() -> None:
        with suppress(OSError):  # standard output is closed
            say(f"serving {workspace.path} at {url} (routes: /docs, MCP: /mcp; Ctrl+C to stop)")

    sys.setswitchinterval(SWITCH_SECONDS)
    # `requests` filters it on import, which `catch_warnings` in another thread may undo
    warnings.filterwarnings("ignore", "SOCKS support in urllib3")
    threading.Thread(target=_preload, args=(stores_of(workspace),), daemon=True).start()
    server = _AppServer(app, announce)
    try:
        server.run([listening])
    finally:
        listening.close()


@contextmanager
def running(workspace: Workspace, settings: ServerSettings | None = None) -> Iterator[str]:
    """Serve a workspace in a thread while the block runs; by default on loopback, at a free port.

    Yields:
        The address, for `kbkit.connect`.

    Raises:
        ConfigError: The address or port cannot be used, or others can reach it without a token.
    """
    settings = settings or ServerSettings(port=0)
    app = _app(workspace, settings)
    listening = listen(settings.host, settings.port)
    started = threading.Event()
    server = _AppServer(app, started.set)

    def run() -> None:
        try:
            server.run([listening])
        finally:
            started.set()  # also if the start failed

    thread = threading.Thread(target=run, name="kbkit-server", daemon=True)
    thread.start()
    try:
        started.wait()
        if not server.started:
            raise ConfigError("the server did not start; its log says why")
        yield url_of(listening)
    finally:
        server.end()
        thread.join()
        listening.close()


def url_of(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def _app(workspace: Workspace, settings: ServerSettings) -> FastAPI:
    if not is_loopback(settings.host) and not Tokens(workspace).any():
        raise ConfigError(
            f"host={settings.host!r}: others can reach it, and no token protects it; make one "
            "first (kbkit token create NAME), and serve behind https"
        )
    searches = SearchProcesses(workspace, settings.search_processes)
    parts = [mcp_part(workspace, settings, searches)] if settings.tools else []
    return application(workspace, settings, searches=searches, parts=parts)


def _preload(stores: Stores) -> None:
    """Import the modules of the first write, which takes a second or two."""
    stores.preload()
    load_splitter()
    gc.collect()
    gc.freeze()  # exclude long-lived objects from garbage collection
