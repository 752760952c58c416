"""Standalone MkDocs projects: written, and built by MkDocs in a process of its own."""

from __future__ import annotations

import hashlib
import html
import os
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import yaml

from kbkit.errors import ExportError
from kbkit.export.manifest import MANIFEST, write_file
from kbkit.models import KnowledgeBaseInfo
from kbkit.recipes import SiteSpec

CONFIG = "mkdocs.yml"
DOCS = "docs"
HTML = "site"
MARKER = ".kbkit-site"
"""Marks a folder of HTML as one that a build may empty; MkDocs leaves names with dots alone."""

SEPARATOR = r"[\s\-_,:;!?=+*/\\|\[\](){}\"'`~^%$#@<>]+|\.(?!\d)|&(?:lt|gt|amp|quot);"
"""Where the site search divides text: ``append_event`` and ``os.path.join`` are found whole and
by their parts, ``3.11`` stays whole. The parts of ``appendEvent`` are added by the plugin."""

_HEADER = "# Written by kbkit; edit it and remove this line, and kbkit will not write it again.\n"


def theme() -> dict[str, Any]:
    """The theme of exported sites: nothing comes from a CDN, light and dark."""

    def palette(scheme: str, media: str, icon: str, other: str) -> dict[str, Any]:
        toggle = {"icon": icon, "name": f"Switch to {other} mode"}
        colours = {"primary": "indigo", "accent": "indigo"}
        return {"media": media, "scheme": scheme, **colours, "toggle": toggle}

    return {
        "name": "material",
        "font": False,
        "palette": [
            palette("default", "(prefers-color-scheme: light)", "material/weather-night", "dark"),
            palette("slate", "(prefers-color-scheme: dark)", "material/weather-sunny", "light"),
        ],
        # Pruning keeps thousands of pages from carrying the whole navigation
        "features": [
            "navigation.sections", "navigation.prune", "navigation.top", "toc.follow",
            "search.suggest", "search.highlight", "content.code.copy",
        ],
    }  # fmt: skip


def write_project(directory: Path, info: KnowledgeBaseInfo, site: SiteSpec) -> Path:
    """Write what MkDocs needs to build a knowledge base's pages into a site of its own.

    The pages belong into the folder ``docs`` of the project. A ``mkdocs.yml`` that somebody else
    wrote or took over is left alone.

    Args:
        directory: Folder of the project; made if need be.
        info: What the registry knows of the knowledge base.
        site: What the site says.

    Returns:
        The project's folder.

    Raises:
        ExportError: The folder cannot be written.
    """
    config: dict[str, Any] = {
        # MkDocs puts both into its pages as they are: they are HTML
        "site_name": html.escape(site.title or info.name),
        "docs_dir": DOCS,
        "site_dir": HTML,
        "use_directory_urls": False,
        "theme": theme(),
        "plugins": [{"search": {"lang": "en", "separator": SEPARATOR}}, "kbkit"],
        "extra": {"generator": False},
    }
    if info.description:
        config["site_description"] = html.escape(info.description)
    if site.url:
        config["site_url"] = site.url
    path = directory / CONFIG
    try:
        (directory / DOCS).mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8").startswith(_HEADER):
            text = yaml.safe_dump(config, sort_keys=False, allow_unicode=True, width=100)
            write_file(path, (_HEADER + text).encode())
    except OSError as error:
        raise ExportError(
            f"{directory}: cannot write the MkDocs project ({error.strerror or error}); "
            "free the place or choose another folder"
        ) from error
    return directory


def write_standalone(project: Path) -> None:
    """Add to a project what lets others build it, who have neither workspace nor kbkit yet.

    Files that are there already are left alone.

    Raises:
        ExportError: The folder cannot be written.
    """
    files = {
        "requirements.txt": f"kbkit[site]=={version('kbkit')}\n",
        ".gitignore": f"/{HTML}/\n*.lock\n",
        "README.md": _STANDALONE_README,
        ".github/workflows/site.yml": _STANDALONE_WORKFLOW,
    }
    try:
        for name, text in files.items():
            if not (project / name).exists():
                write_file(project / name, text.encode())
    except OSError as error:
        raise ExportError(
            f"{project}: cannot write the MkDocs project ({error.strerror or error}); "
            "free the place or choose another folder"
        ) from error


_STANDALONE_README = f"""\
# A site made by kbkit

The pages in `{DOCS}` were exported from a knowledge base; `{DOCS}/about.md` says where they come
from. To build the site into `{HTML}`, with Python 3.11 or newer:

    python -m pip install -r requirements.txt
    python -m mkdocs build --strict

Then put `{HTML}` on any web server. On GitHub, the workflow publishes it to Pages.
"""

_STANDALONE_WORKFLOW = f"""\
name: Publish the site

on:
  push:
    branches: [main]
  workflow_dispatch:

permissions:
  contents: read
  pages: write
  id-token: write

concurrency:
  group: pages

jobs:
  publish:
    runs-on: ubuntu-latest
    environment:
      name: github-pages
      url: ${{{{ steps.deployment.outputs.page_url }}}}
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with:
          python-version: "3.13"
          cache: pip
          cache-dependency-path: requirements.txt
      - run: python -m pip install -r requirements.txt
      - run: python -m mkdocs build --strict
      - uses: actions/upload-pages-artifact@v3
        with:
          path: {HTML}
      - id: deployment
        uses: actions/deploy-pages@v4
"""


def build_site(project: Path, *, strict: bool = True) -> Path:
    """Build a MkDocs project into HTML; nothing is done when it is as it was built last.

    Args:
        project: Folder with the ``mkdocs.yml`` that `write_project` made.
        strict: Let warnings of MkDocs fail the build.

    Returns:
        The folder of the site.

    Raises:
        ExportError: The build failed; the message has MkDocs' own lines.
    """
    site = project / HTML
    state = f"{strict} {_state(project)}"
    if _is_ours(project) and _built(site) == state:
        return site
    _claim(site)
    # -P: a module in the working folder must not be taken for a library. Not --quiet: it hides
    # warnings from strict mode too
    command = [sys.executable, "-P", "-m", "mkdocs", "build"]
    command += ["--config-file", str(project / CONFIG), "--site-dir", str(site.resolve())]
    if strict:
        command.append("--strict")
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "true", "PYTHONUTF8": "1"}
    done = subprocess.run(  # noqa: S603  # our own interpreter, no shell
        command,
        check=False,
        capture_output=True,
        text=True,
        encoding="utf-8",
        errors="replace",
        stdin=subprocess.DEVNULL,
        env=environment,
    )
    if done.returncode:
        raise ExportError(
            f"{project}: MkDocs could not build the site:\n{_relevant(done.stdout + done.stderr)}"
        )
    (site / MARKER).write_text(state, encoding="utf-8")
    return site


def _state(project: Path) -> str:
    """Identifies what a build reads: pages by size and time, the rest by what it says."""
    state = hashlib.blake2b(digest_size=16)
    state.update(version("kbkit").encode() + version("mkdocs-material").encode())
    for path in sorted((project / DOCS).rglob("*")):
        name = path.relative_to(project).as_posix()
        if path.is_file() and not path.name.startswith("."):
            about = path.stat()
            state.update(f"{name} {about.st_size} {about.st_mtime_ns}\n".encode())
    for path in (project / CONFIG, project / DOCS / MANIFEST):
        if path.is_file():
            state.update(path.read_bytes())
    return state.hexdigest()


def _is_ours(project: Path) -> bool:
    """Whether kbkit wrote the configuration; another one may read files that nobody knows of."""
    config = project / CONFIG
    return config.is_file() and config.read_text(encoding="utf-8").startswith(_HEADER)


def _built(site: Path) -> str:
    """What the site was built from; empty where a build did not end, or none began."""
    if not (site / "index.html").is_file() or not (site / MARKER).is_file():
        return ""
    return (site / MARKER).read_text(encoding="utf-8")


def _claim(site: Path) -> None:
    """Make sure that MkDocs, which empties the folder, destroys nothing of somebody else's."""
    try:
        if site.is_dir() and any(site.iterdir()) and not (site / MARKER).exists():
            raise ExportError(
                f"{site}: holds files that kbkit did not write, and building would delete them; "
                "move them away or choose another folder"
            )
        site.mkdir(parents=True, exist_ok=True)
        (site / MARKER).write_text("", encoding="utf-8")
    except OSError as error:
        raise ExportError(f"{site}: cannot be written ({error.strerror or error})") from error


def _relevant(output: str) -> str:
    """The lines of MkDocs' output that say what is wrong, 20 at most."""
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line).rstrip() for line in output.splitlines()]
    lines = [line for line in lines if line.strip()]
    telling = [line for line in lines if re.match(r"(WARNING|ERROR|CRITICAL|Error|Aborted)", line)]
    return "\n".join((telling or lines)[-20:])
