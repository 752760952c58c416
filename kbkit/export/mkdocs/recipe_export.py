"""Exports the knowledge base of a recipe into a site that is being built."""

from __future__ import annotations

from pathlib import Path

from kbkit.errors import ExportError
from kbkit.export.mkdocs.python_process import run_python
from kbkit.recipes import load_recipe


def export_recipe(recipe: Path, workspace: Path, folder: Path) -> None:
    """Export the knowledge base of a recipe into a folder named after it.

    Another process does it: the export knows no workspace, and MkDocs need not hold what an
    ingest loads.

    Raises:
        RecipeError: The recipe is wrong.
        ExportError: It cannot be built or exported.
    """
    target = folder / load_recipe(recipe).name
    done = run_python(
        "kbkit.cli", "--workspace", str(workspace),
        "export", str(recipe), "--folder", str(target), "--pages-only", "--trust",
    )  # fmt: skip
    if done.returncode:
        raise ExportError(f"{recipe} cannot be published:\n{done.stderr.strip()}")
