"""The notebooks run from top to bottom in a fresh kernel, offline, and are kept without output."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

import kbkit

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
ALL = sorted(NOTEBOOKS.glob("*.ipynb"))


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_notebooks_are_stored_without_output(path: Path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert (notebook.nbformat, notebook.nbformat_minor) == (4, 5)
    for cell in notebook.cells:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None


def run(path: Path, folder: Path) -> nbformat.NotebookNode:
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook, timeout=240, kernel_name="python3", resources={"metadata": {"path": folder}}
    )
    return client.execute()


def output_of(notebook: nbformat.NotebookNode, part: str) -> str:
    """All that the one cell whose source has this part put out, as text and HTML."""
    [cell] = [cell for cell in notebook.cells if cell.cell_type == "code" and part in cell.source]
    pieces = []
    for output in cell.outputs:
        pieces += [output.get("text", ""), *map(str, output.get("data", {}).values())]
    return "\n".join(pieces)


def test_build_a_knowledge_base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    workspace = tmp_path / "kb"
    monkeypatch.setenv("KBKIT_WORKSPACE", str(workspace))
    monkeypatch.setenv("KBKIT_RATER", "notebook")
    notebook = run(NOTEBOOKS / "01-build-a-knowledge-base.ipynb", NOTEBOOKS)

    assert "Built <b>kbkit-docs</b>" in output_of(notebook, "report = kbkit.build")
    # Nothing, unless somebody edits kbkit's own documentation at this moment.
    embedded = int(output_of(notebook, "again = kbkit.build").split()[0])
    assert embedded < 50
    assert "<table>" in output_of(notebook, "hits = kb.search")
    assert "application/vnd.jupyter.widget-view+json" in str(
        next(cell for cell in notebook.cells if "SearchPanel(ws)" in cell.source).outputs
    )
    assert "SearchPanel" in output_of(notebook, "panel.hits.to_frame()")
    assert "just what I was looking for" in output_of(notebook, "kb.rate(")
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            assert output.output_type != "error"

    with kbkit.open(workspace) as ws:
        kb = ws["kbkit-docs"]
        assert len(kb.documents()) > 100
        assert kb.ratings()[["score", "rater"]].values.tolist() == [[5, "notebook"]]
        site = kb.site_directory()
    assert len(list(site.rglob("*.md"))) > 100
    assert list(site.rglob("index.html"))
