"""The notebook of a recipe."""

from pathlib import Path

import nbformat
import pytest

from kbkit.errors import ConflictError, NotebookError, RecipeError
from kbkit.workflows.notebook import run_notebook, write_notebook

RECIPE = """\
name: small
description: 'Two *pages* <script>'
sources: [{type: files, path: docs}]
site: {title: "A [title]"}
"""


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    path = tmp_path / "recipes" / "small.yaml"
    path.parent.mkdir()
    path.write_text(RECIPE, encoding="utf-8")
    return path


def parameters(path: Path) -> dict[str, object]:
    """Return the values that the parameters' cell sets."""
    cells = nbformat.read(path, as_version=4).cells
    (cell,) = [cell for cell in cells if "parameters" in cell.metadata.get("tags", [])]
    values: dict[str, object] = {}
    exec(cell.source, values)
    return values


def test_notebook_is_filled(recipe: Path, tmp_path: Path):
    folder = tmp_path / "notebooks"
    folder.mkdir()
    path = write_notebook(recipe, folder / "out.ipynb", workspace=tmp_path / "it's kb")
    assert (folder / str(parameters(path)["recipe"])).resolve() == recipe
    assert (folder / str(parameters(path)["workspace"])).resolve() == tmp_path / "it's kb"
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    title, about = notebook.cells[0].source.splitlines()[::2][:2]
    assert title == r"# A \[title\]"
    assert about == r"Two \*pages\* \<script\>"
    assert "This notebook builds the knowledge base" in notebook.cells[0].source


def test_notebook_is_named_after_the_recipe(recipe: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(recipe.parent)
    path = write_notebook("small.yaml")
    assert path == Path("small.ipynb")
    assert parameters(path)["recipe"] == "small.yaml"
    assert parameters(path)["workspace"] is None


def test_existing_file_is_kept_unless_forced(recipe: Path, tmp_path: Path):
    path = tmp_path / "mine.ipynb"
    path.write_text("precious")
    with pytest.raises(ConflictError, match=r"mine\.ipynb: exists.*--force"):
        write_notebook(recipe, path)
    assert path.read_text() == "precious"
    write_notebook(recipe, path, force=True)
    assert parameters(path)


def test_bad_input_is_one_clear_error(recipe: Path, tmp_path: Path):
    with pytest.raises(RecipeError, match=r"missing\.yaml"):
        write_notebook(tmp_path / "missing.yaml")
    with pytest.raises(NotebookError, match=r"end it with \.ipynb"):
        write_notebook(recipe, tmp_path / "out.txt")
    with pytest.raises(NotebookError, match="cannot be written"):
        write_notebook(recipe, tmp_path / "nowhere" / "out.ipynb")
    broken = tmp_path / "broken.ipynb"
    broken.write_text("no notebook")
    with pytest.raises(NotebookError, match="cannot be read as a notebook"):
        run_notebook(broken)


def test_failing_cell_is_named_and_earlier_output_kept(tmp_path: Path):
    cells = [
        nbformat.v4.new_markdown_cell("# Title"),
        nbformat.v4.new_code_cell("import os\nprint(6 * 7, os.path.basename(os.getcwd()))"),
        nbformat.v4.new_code_cell("raise ValueError('no\\nsuch thing')"),
        nbformat.v4.new_code_cell("print('never')"),
    ]
    path = tmp_path / "fails.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    steps = []
    with pytest.raises(NotebookError, match=r"fails\.ipynb: cell 3 failed: ValueError: no such"):
        run_notebook(path, on_progress=steps.append)
    assert [(step.done, step.total, step.message) for step in steps] == [
        (0, 3, "import os"),
        (1, 3, "raise ValueError('no\\nsuch thing')"),
    ]
    kept = nbformat.read(path, as_version=4)
    assert kept.cells[1].outputs[0].text.split() == ["42", tmp_path.name]
    assert not kept.cells[3].outputs
