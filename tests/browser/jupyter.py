"""A real Jupyter server that knows no settings of the user, and notebooks on it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

TOKEN = "panel-test"
_PLACES = {"jupyterlab": "doc/tree", "notebook": "notebooks"}


@dataclass(frozen=True, slots=True)
class Server:
    """A running server.

    Attributes:
        address: Without a slash at the end.
        home: What stands for the home of its user. Notebooks lie in folders of ``notebooks``.
    """

    address: str
    home: Path

    def write(self, cells: tuple[str, ...], app: str = "jupyterlab") -> tuple[Path, str]:
        """Write a notebook of some cells; its folder, which is new, and its address in an app."""
        import nbformat

        self._forget_settings()
        root = self.home / "notebooks"
        folder = root / str(len(list(root.iterdir())))
        folder.mkdir()
        written = [nbformat.v4.new_code_cell(source) for source in cells]
        python = {"name": "python3", "display_name": "Python 3", "language": "python"}
        notebook = nbformat.v4.new_notebook(cells=written, metadata={"kernelspec": python})
        nbformat.write(notebook, folder / "panel.ipynb")
        place = f"{_PLACES[app]}/{folder.name}/panel.ipynb"
        return folder, f"{self.address}/{place}?token={TOKEN}"

    def stop_kernels(self) -> None:
        """End the kernels of all notebooks."""
        for kernel in json.loads(self._ask("GET", "kernels")):
            self._ask("DELETE", f"kernels/{kernel['id']}")

    def _ask(self, method: str, what: str) -> bytes:
        headers = {"Authorization": f"token {TOKEN}"}
        url = f"{self.address}/api/{what}"
        with urllib.request.urlopen(urllib.request.Request(url, None, headers, method=method)) as r:
            return bytes(r.read())

    def _forget_settings(self) -> None:
        folder = self.home / "settings" / "@jupyterlab" / "apputils-extension"
        folder.mkdir(parents=True, exist_ok=True)
        for file in folder.iterdir():
            file.unlink()
        no_news = '{"fetchNews": "false", "checkForUpdates": false}'
        (folder / "notification.jupyterlab-settings").write_text(no_news)


@contextmanager
def server(home: Path) -> Iterator[Server]:
    """A server of JupyterLab and Notebook."""
    folder = home / "notebooks"
    folder.mkdir()
    port = free_port()
    command = [
        sys.executable,
        "-m",
        "jupyterlab",
        "--no-browser",
        "--allow-root",
        f"--ServerApp.root_dir={folder}",
        "--ServerApp.ip=127.0.0.1",
        f"--ServerApp.port={port}",
        "--ServerApp.port_retries=0",
        f"--IdentityProvider.token={TOKEN}",
        "--LabApp.extension_manager=readonly",
        "--LabApp.news_url=None",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        "--LabApp.expose_app_in_browser=True",
        "--JupyterNotebookApp.expose_app_in_browser=True",
    ]
    log = home / "log"
    with log.open("w") as output:
        process = subprocess.Popen(command, env=own_environment(home), stdout=output, stderr=output)
    try:
        address = f"http://127.0.0.1:{port}"
        wait_until_up(f"{address}/api/status?token={TOKEN}", process, log)
        yield Server(address, home)
    finally:
        process.terminate()
        process.wait(timeout=20)


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def own_environment(home: Path) -> dict[str, str]:
    """An environment for Jupyter that has nothing of the user's."""
    return {
        **os.environ,
        "HOME": str(home),
        "IPYTHONDIR": str(home / "ipython"),
        "JUPYTER_CONFIG_DIR": str(home / "config"),
        "JUPYTER_DATA_DIR": str(home / "data"),
        "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
        "JUPYTERLAB_SETTINGS_DIR": str(home / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(home / "workspaces"),
        "KBKIT_RATER": "reader",
    }


def wait_until_up(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until a server answers."""
    for _ in range(1800):
        try:
            urllib.request.urlopen(url).close()
        except (urllib.error.URLError, ConnectionError):
            assert process.poll() is None, log.read_text()
            time.sleep(0.1)
        else:
            return
    raise AssertionError(f"It did not start in three minutes:\n{log.read_text()}")
