"""Build sites with MkDocs in a process, and serve them locally."""

import hashlib
import html
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import quote

import yaml

from kbkit.errors import ExportError
from kbkit.export.facts import MANIFEST, asset, write_file, writing
from kbkit.models import KnowledgeBaseInfo
from kbkit.models.values import plain
from kbkit.recipes import SiteSpec, load_recipe
from kbkit.runtime.web_server import serve_folder

CONFIG = "mkdocs.yml"
DOCS = "docs"
HTML = "site"

SEPARATOR = r"[\s\-_,:;!?=+*/\\|\[\](){}\"'`~^%$#@<>]+|\.(?!\d)|&(?:lt|gt|amp|quot);"
"""Separators of the site search: ``append_event`` and ``os.path.join`` match as a whole and in
parts, ``3.11`` only as a whole."""

_ADDRESS = "%:/?#[]@!$&()*+,;=~"  # safe characters

_HEADER = "# Written by kbkit; edit it and remove this line, and kbkit will not write it again.\n"


def theme() -> dict[str, Any]:
    return yaml.safe_load(asset("theme.yml"))


def write_project(folder: Path, info: KnowledgeBaseInfo, site: SiteSpec) -> Path:
    """Write an MkDocs project around its folder ``docs``; keep another author's ``mkdocs.yml``."""
    config: dict[str, Any] = {
        # MkDocs inserts name and description into pages as HTML
        "site_name": html.escape(plain(site.title or info.name)),
        "docs_dir": DOCS,
        "site_dir": HTML,
        "use_directory_urls": False,
        "theme": theme(),
        "plugins": [{"search": {"lang": "en", "separator": SEPARATOR}}, "kbkit"],
        "extra": {"generator": False},
    }
    if info.description:
        config["site_description"] = html.escape(plain(info.description))
    if site.url:
        config["site_url"] = quote(site.url, safe=_ADDRESS)
    with writing(folder, "the MkDocs project"):
        (folder / DOCS).mkdir(parents=True, exist_ok=True)
        if not (folder / CONFIG).exists() or is_ours(folder):
            text = yaml.safe_dump(config, sort_keys=False, allow_unicode=True, width=100)
            write_file(folder / CONFIG, (_HEADER + text).encode())
    return folder


def is_ours(project: Path) -> bool:
    config = project / CONFIG
    return config.is_file() and config.read_text(encoding="utf-8").startswith(_HEADER)


_FILES = {
    "requirements.txt": f"kbkit[site]=={version('kbkit')}\n",
    ".gitignore": f"/{HTML}/\n*.lock\n",
    "README.md": asset("standalone-readme.md"),
    ".github/workflows/site.yml": asset("standalone-workflow.yml"),
}


def write_standalone(project: Path) -> None:
    """Add missing files to a project; existing ones stay."""
    with writing(project, "the MkDocs project"):
        for name, text in _FILES.items():
            if not (project / name).exists():
                write_file(project / name, text.encode())


def run_python(module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a module with this interpreter and capture its output as UTF-8."""
    # -P: a module in the working folder must not shadow a library
    return subprocess.run(  # noqa: S603  # our own interpreter, no shell
        [sys.executable, "-P", "-m", module, *arguments],
        check=False,
        capture_output=True,
        text=True,
        encoding="utf-8",
        errors="replace",
        stdin=subprocess.DEVNULL,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "true", "PYTHONUTF8": "1"},
    )


MARKER = ".kbkit-site"
"""Marks a folder of HTML that a build may empty; MkDocs keeps names with a leading dot."""


def build_site(project: Path) -> Path:
    """Build a MkDocs project into HTML, unless it is unchanged since the last build."""
    site = project / HTML
    state = _state(project)
    marker = site / MARKER
    is_built = (site / "index.html").is_file() and marker.is_file()
    if is_ours(project) and is_built and marker.read_text(encoding="utf-8") == state:
        return site
    _claim(site)
    # not --quiet, which also hides warnings from strict mode
    options = ["--config-file", str(project / CONFIG), "--site-dir", str(site.resolve())]
    process = run_python("mkdocs", "build", "--strict", *options)
    if process.returncode:
        errors = _error_lines(process.stdout + process.stderr)
        raise ExportError(f"{project}: MkDocs could not build the site:\n{errors}")
    marker.write_text(state, encoding="utf-8")
    return site


@contextmanager
def serve_site(site: Path, port: int = 0) -> Iterator[str]:
    folder = find_site(site)
    if folder is None:
        raise ExportError(f"{site}: no site here (index.html is missing); export one first")
    with serve_folder(folder, port) as address:
        yield address


def find_site(folder: Path) -> Path | None:
    places = (folder, folder / HTML)
    return next((place for place in places if (place / "index.html").is_file()), None)


def _state(project: Path) -> str:
    state = hashlib.blake2b(digest_size=16)
    state.update(version("kbkit").encode() + version("mkdocs-material").encode())
    for path in sorted((project / DOCS).rglob("*")):
        name = path.relative_to(project).as_posix()
        if path.is_file() and not path.name.startswith("."):
            status = path.stat()
            state.update(f"{name} {status.st_size} {status.st_mtime_ns}\n".encode())
    for path in (project / CONFIG, project / DOCS / MANIFEST):
        if path.is_file():
            state.update(path.read_bytes())
    return state.hexdigest()


def _claim(site: Path) -> None:
    """Mark the folder; refuse one with other files, which MkDocs would delete."""
    with writing(site, "the site"):
        if site.is_dir() and any(site.iterdir()) and not (site / MARKER).exists():
            raise ExportError(
                f"{site}: has files that kbkit did not write, and building would delete them; "
                "move them away or choose another folder"
            )
        site.mkdir(parents=True, exist_ok=True)
        (site / MARKER).write_text("", encoding="utf-8")


def _error_lines(output: str) -> str:
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line).rstrip() for line in output.splitlines()]
    lines = [line for line in lines if line.strip()]
    errors = [line for line in lines if re.match(r"(WARNING|ERROR|CRITICAL|Error|Aborted)", line)]
    return "\n".join((errors or lines)[-20:])


def take_entries(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    index = json.loads(path.read_text(encoding="utf-8"))
    entries: list[dict[str, Any]] = index.pop("docs")
    text = json.dumps({**index, "docs": []}, separators=(",", ":"))
    path.write_text(text, encoding="utf-8")
    path.with_suffix(".js").write_text(f"var __index = {text};", encoding="utf-8")
    return entries


def export_recipe(recipe: Path, workspace: Path, folder: Path) -> None:
    """Export a recipe's knowledge base into a folder of its name, in another process.

    So exports need not import workspaces, and MkDocs does not keep an ingest's memory.
    """
    options = ["--folder", str(folder / load_recipe(recipe).name), "--pages-only", "--trust"]
    process = run_python("kbkit", "--workspace", str(workspace), "export", str(recipe), *options)
    if process.returncode:
        raise ExportError(f"{recipe} cannot be published:\n{process.stderr.strip()}")
