"""MkDocs hook that adds a page for each notebook.

Notebooks are stored without output. ``python site/_notebooks.py`` runs them and saves the results
in ``build/notebooks``; pages show these if their cells are unchanged. Output is text, sanitised
HTML and images, so that pages fetch nothing and run no script.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nbformat
import nh3

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

ROOT = Path(__file__).parents[1]
PANEL = "application/vnd.jupyter.widget-view+json"
MAX_LENGTH = 6_000
TAGS = {"b", "br", "code", "i", "p", "q", "small", "table", "tbody", "td", "th", "thead", "tr"}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for each notebook."""
    from mkdocs.structure.files import File

    root = Path(config.config_file_path).parent
    for path in sorted((root / "notebooks").glob("*.ipynb")):
        text = page(path, root / "build/notebooks" / path.name)
        files.append(File.generated(config, f"notebooks/{path.stem}.md", content=text))
    return files


def page(path: Path, executed: Path) -> str:
    """Return a notebook in Markdown, with the output of ``executed`` if it has the same cells."""
    cells = nbformat.read(path, as_version=4).cells
    if executed.exists():
        run = nbformat.read(executed, as_version=4).cells
        if [cell.source for cell in run] == [cell.source for cell in cells]:
            cells = run
    parts: list[str] = []
    for number, cell in enumerate(cells):
        if cell.cell_type == "markdown":
            parts.append(re.sub(r"\(([\w-]+)\.ipynb\)", r"(\1.md)", cell.source))
        else:
            parts.append(fenced(cell.source, "python"))
            parts += [shown(output, number) for output in cell.get("outputs", ())]
    return "\n\n".join(part for part in parts if part) + "\n"


def shown(output: Any, number: int) -> str:
    """Return a cell's output in Markdown."""
    data = output.get("data", {})
    plain = output.get("text", "") or data.get("text/plain", "")
    if PANEL in data:
        kind = plain.partition("(")[0]
        return f"*Here {kind} is shown: run the notebook to use it.*" if "Panel" in kind else ""
    if "image/svg+xml" in data:
        return block(inlined(data["image/svg+xml"], f"cell-{number}-"))
    if "text/html" in data:
        return block(nh3.clean(without_paths(data["text/html"]), tags=TAGS, attributes={}))
    return fenced(clipped(without_paths(plain)), "text")


def inlined(svg: str, prefix: str) -> str:
    """Return an SVG in the colour of the page, with unique ids."""
    from kbkit.plots import NEUTRAL_INK  # slow to import

    return re.sub(r'(id="|#)(?=clip|gradient)', rf"\g<1>{prefix}", svg).replace(
        NEUTRAL_INK, "currentColor"
    )


def block(markup: str) -> str:
    """Return HTML that Python-Markdown keeps and the search ignores."""
    line = " ".join(markup.split())
    return f'<div class="kb-output" data-search-exclude style="overflow-x: auto">{line}</div>'


def fenced(text: str, language: str) -> str:
    """Return a code block whose fence is longer than any in the text."""
    longest = max(map(len, re.findall("`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}" if text.strip() else ""


def clipped(text: str) -> str:
    """Cut a text after `MAX_LENGTH` characters."""
    return text if len(text) <= MAX_LENGTH else text[:MAX_LENGTH].rstrip() + "\n…"


def without_paths(text: str) -> str:
    """Remove this machine's folders from a text."""
    text = text.replace(str(ROOT) + "/", "")
    return re.sub(re.escape(tempfile.gettempdir()) + r"/kbkit-\w+", "kb", text)


def run_all() -> None:
    """Run each notebook in a workspace of its own, and save the results."""
    from nbclient import NotebookClient

    os.environ.pop("KBKIT_WORKSPACE", None)
    target = ROOT / "build/notebooks"
    target.mkdir(parents=True, exist_ok=True)
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        sys.stderr.write(f"running {path.name}\n")
        with tempfile.TemporaryDirectory(prefix="kbkit-") as folder:
            os.environ["KBKIT_WORKSPACE"] = folder
            notebook = nbformat.read(path, as_version=4)
            resources = {"metadata": {"path": str(ROOT / "notebooks")}}
            NotebookClient(notebook, timeout=600, resources=resources).execute()
        nbformat.write(notebook, target / path.name)


if __name__ == "__main__":
    run_all()
