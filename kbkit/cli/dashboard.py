"""Serve the dashboard of a workspace with Voilà, for people without notebooks.

Each visitor gets a kernel with the rights of this process. So a token is always required, also on
loopback, which other programs and web pages can reach.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import signal
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import quote

from kbkit.errors import ConfigError
from kbkit.extras import missing
from kbkit.runtime.config import Settings
from kbkit.runtime.processes import ending_signals
from kbkit.runtime.web_server import is_loopback, listen
from kbkit.workspace import Workspace

LOOPBACK = "127.0.0.1"
_SHORTEST_TOKEN = 16
_IDLE_SECONDS = 600
"""Idle time after which a kernel without a page ends."""
_WARM_KERNELS = 2
"""Kernels with a ready dashboard."""
_START_SECONDS = 10
_FILL_INTERVAL = 30_000
"""Milliseconds between checks of the pool."""
_LARGEST_MESSAGE = 150_000_000
"""Bytes; an upload of 100 MB is one message with some overhead."""

# only those of widgets: other JupyterLab extensions would fail
_EXTENSIONS = [
    "@voila-dashboards/widgets-manager8",
    "@jupyter-widgets/jupyterlab-manager",
    "anywidget",
]

_COOKIES = {"samesite": "Strict"}

# Allows nothing from third parties. Views are modules created from text (blob:); 'self' covers the
# kernel's websocket (in Safari from 15.4).
_POLICY = (
    "default-src 'self' data: blob:; script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:; "
    "style-src 'self' 'unsafe-inline'; connect-src 'self' data: blob:; "
    "frame-ancestors 'none'; base-uri 'self'; form-action 'self'; object-src 'none'"
)


def serve_panel(
    workspace: str | Path | None = None,
    *,
    host: str = LOOPBACK,
    port: int = 8866,
    token: str = "",
    theme: str = "light",
    open_browser: bool = False,
    say: Callable[[str], None] = print,
) -> None:
    """Serve the dashboard until interrupted."""
    token = token or Settings.load().panel_token
    check_options(host, token, theme)
    with listen(host, port) as probe:
        port = probe.getsockname()[1]
    with Workspace(workspace) as opened:
        path = opened.path
    token = token or secrets.token_urlsafe(24)
    address = f"http://{f'[{host}]' if ':' in host else host}:{port}/?token={quote(token)}"
    with tempfile.TemporaryDirectory(prefix="kbkit-panel-") as folder:
        notebook = _write_notebook(Path(folder), path)
        say(f"serving {path} at {address} (Ctrl+C to stop)")
        if open_browser:
            import webbrowser

            webbrowser.open(address)
        _run_voila(notebook, host, port, token, theme)


def check_options(host: str, token: str, theme: str) -> None:
    if find_spec("voila") is None:
        raise missing("lab", "voila", "Serving the dashboard")
    if theme not in ("light", "dark"):
        raise ConfigError(f"theme={theme!r}: choose light or dark")
    if not is_loopback(host) and not token:
        raise ConfigError(
            f"host={host!r}: others can reach it, and may read and change the workspace; require a "
            "token (--token), and serve behind https"
        )
    if token and len(token) < _SHORTEST_TOKEN:
        raise ConfigError(f"token: shorter than {_SHORTEST_TOKEN} characters; give a longer one")


def _write_notebook(folder: Path, workspace: Path) -> Path:
    import nbformat

    code = (
        # the working directory of kbkit, to read the same settings
        f"import os\n\nos.chdir({str(Path.cwd())!r})\n"
        "import kbkit\nfrom kbkit.panels import Dashboard\n\n"
        f"Dashboard(kbkit.open({str(workspace)!r}), base={str(Path.cwd())!r})"
    )
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = nbformat.v4.new_notebook(  # type: ignore[no-untyped-call]
        cells=[nbformat.v4.new_code_cell(code)],  # type: ignore[no-untyped-call]
        metadata={"kernelspec": kernel, "title": f"{workspace.name} - kbkit"},
    )
    path = folder / "kbkit.ipynb"
    nbformat.write(notebook, path)  # type: ignore[no-untyped-call]
    return path


def _run_voila(notebook: Path, host: str, port: int, token: str, theme: str) -> None:
    from jupyter_core.utils import run_sync
    from tornado.ioloop import IOLoop, PeriodicCallback
    from traitlets.config import Config
    from voila.app import Voila
    from voila.tornado.handler import TornadoVoilaHandler

    settings: dict[str, dict[str, Any]] = {
        "Voila": {
            "ip": host,
            "port": port,
            "port_retries": 0,
            "open_browser": False,
            "token": token,
            "log_level": "ERROR",
            "config_file_paths": [],
            "tornado_settings": {
                "headers": {"Content-Security-Policy": _POLICY},
                "xsrf_cookie_kwargs": _COOKIES,
                "ws_ping_timeout": 30_000,  # ms; the default exceeds the ping interval
                "websocket_max_message_size": _LARGEST_MESSAGE,
            },
        },
        "VoilaConfiguration": {
            "template": "lab",
            "theme": theme,
            "allow_template_override": "NO",
            "allow_theme_override": "NO",
            "extension_allowlist": _EXTENSIONS,
            "preheat_kernel": True,
            "default_pool_size": _WARM_KERNELS,
            "file_allowlist": [],
        },
        "IdentityProvider": {"cookie_options": _COOKIES},
        "MappingKernelManager": {"cull_idle_timeout": _IDLE_SECONDS, "cull_interval": 60},
    }
    if os.name == "posix":
        # sockets that only their owner may open, instead of ports
        settings["ConnectionFileMixin"] = {"transport": "ipc"}

    class DashboardPage(TornadoVoilaHandler):  # type: ignore[misc]  # Voilà has no types
        async def prepare(self) -> None:
            await super().prepare()
            _ = self.xsrf_token  # reading it sets the cookie

    class Server(Voila):  # type: ignore[misc]
        def setup_template_dirs(self) -> None:
            super().setup_template_dirs()
            # its page extends the one of the template
            self.template_paths.insert(0, str(resources.files("kbkit") / "panels" / "static"))

        def init_handlers(self) -> list[Any]:
            return [
                (path, DashboardPage if handler is TornadoVoilaHandler else handler, *options)
                for path, handler, *options in super().init_handlers()
            ]

        def listen(self) -> None:
            loop = IOLoop.current()
            with suppress(ValueError):  # not in the main thread
                for number in ending_signals():
                    # the loop stops between two callbacks
                    signal.signal(number, lambda *_: loop.add_callback_from_signal(loop.stop))
            kernels = self.kernel_manager
            fill = partial(kernels.fill_if_needed, delay=0, notebook_name=kernels.notebook_path)
            PeriodicCallback(fill, _FILL_INTERVAL).start()
            super().listen()

        def stop(self) -> None:
            pools = self.kernel_manager._pools.values()
            if starting := [task for pool in pools for task in pool]:
                loop = self.ioloop.asyncio_loop
                loop.run_until_complete(asyncio.wait(starting, timeout=_START_SECONDS))
            run_sync(self.kernel_manager.shutdown_all)(now=True)
            shutil.rmtree(self.connection_dir)

    app = Server(config=Config(settings))
    app.initialize([str(notebook)])
    app.start()
