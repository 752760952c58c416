"""The MkDocs project of an export: its configuration and theme."""

from __future__ import annotations

import html
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import quote

import yaml

from kbkit.export.manifest import write_file, writing
from kbkit.models import KnowledgeBaseInfo
from kbkit.models.plain import plain
from kbkit.recipes import SiteSpec

CONFIG = "mkdocs.yml"
DOCS = "docs"
HTML = "site"

SEPARATOR = r"[\s\-_,:;!?=+*/\\|\[\](){}\"'`~^%$#@<>]+|\.(?!\d)|&(?:lt|gt|amp|quot);"
"""Separators of the site search: ``append_event`` and ``os.path.join`` are found as a whole and in
parts, ``3.11`` stays whole. The plugin adds parts of ``appendEvent``."""

_ADDRESS = "%:/?#[]@!$&()*+,;=~"
"""Safe characters of an address."""

_HEADER = "# Written by kbkit; edit it and remove this line, and kbkit will not write it again.\n"


def theme() -> dict[str, Any]:
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
            "navigation.sections",
            "navigation.prune",
            "navigation.top",
            "toc.follow",
            "search.suggest",
            "search.highlight",
            "content.code.copy",
        ],
    }


def write_project(folder: Path, info: KnowledgeBaseInfo, site: SiteSpec) -> Path:
    """Write an MkDocs project around a knowledge base's pages.

    The pages belong into the folder ``docs`` of the project. A ``mkdocs.yml`` that somebody else
    wrote or took over is left alone.
    """
    config: dict[str, Any] = {
        # MkDocs puts both into its pages as they are: they are HTML
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


_README = f"""\
# A site made by kbkit

The pages in `{DOCS}` were exported from a knowledge base; `{DOCS}/about.md` says where they come
from. To build the site into `{HTML}`, with Python 3.11 or newer:

    python -m pip install -r requirements.txt
    python -m mkdocs build --strict

Then put `{HTML}` on any web server. On GitHub, the workflow publishes it to Pages.
"""

_WORKFLOW = f"""\
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

_FILES = {
    "requirements.txt": f"kbkit[site]=={version('kbkit')}\n",
    ".gitignore": f"/{HTML}/\n*.lock\n",
    "README.md": _README,
    ".github/workflows/site.yml": _WORKFLOW,
}


def write_standalone(project: Path) -> None:
    """Add missing files to a project; existing ones stay."""
    with writing(project, "the MkDocs project"):
        for name, text in _FILES.items():
            if not (project / name).exists():
                write_file(project / name, text.encode())
