"""What lets others build an exported MkDocs project, who have neither workspace nor kbkit yet."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

from kbkit.export.files import write_file, writing
from kbkit.export.mkdocs.project import DOCS, HTML

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
    """Add what is missing of that to a project; files that are there already are left alone.

    Raises:
        ExportError: The folder cannot be written.
    """
    with writing(project, "the MkDocs project"):
        for name, text in _FILES.items():
            if not (project / name).exists():
                write_file(project / name, text.encode())
