"""Write and run the notebook of a recipe."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kbkit.errors import ConflictError, NotebookError
from kbkit.extras import extra
from kbkit.models import Progress
from kbkit.recipes import Recipe, load_recipe
from kbkit.runtime.progress import OnProgress, ignore
from kbkit.workflows.draft import inside

if TYPE_CHECKING:
    from nbformat import NotebookNode

_TEMPLATE = "recipe.ipynb"
_PARAMETERS = "parameters"
"""Tag of the cell with the parameters, also for papermill."""
_TITLE = "title"
_MARKUP = re.compile(r"[\\`*_\[\]<>&#|!]")
_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_MAX_LENGTH = 300


def write_notebook(
    recipe: str | Path,
    output: str | Path | None = None,
    *,
    workspace: str | Path | None = None,
    trust: bool = False,
    force: bool = False,
) -> Path:
    """Write a notebook that builds a recipe and explores the result; paths start at its folder."""
    with extra("lab", "nbformat", "Writing a notebook"):
        import nbformat

    loaded = load_recipe(recipe)
    path = Path(output) if output is not None else Path(f"{loaded.name}.ipynb")
    if path.suffix != ".ipynb":
        raise NotebookError(f"{path}: not a notebook's name; end it with .ipynb")
    if path.exists() and not force:
        raise ConflictError(f"{path}: exists; name another file, or write over it with --force")
    notebook = nbformat.reads(  # type: ignore[no-untyped-call]
        resources.files(__name__).joinpath(_TEMPLATE).read_text(encoding="utf-8"), as_version=4
    )
    values: dict[str, str | bool] = {"recipe": inside(Path(recipe), path.parent), "trust": trust}
    if workspace is not None:
        values["workspace"] = inside(Path(workspace), path.parent)
    _fill(notebook, loaded, values)
    _write(notebook, path)
    return path


def run_notebook(path: str | Path, *, on_progress: OnProgress | None = None) -> None:
    """Run a notebook in a fresh kernel, in its own folder, and save the output."""
    with extra("lab", "Jupyter", "Running a notebook"):
        import nbclient
        import nbformat
        from jupyter_client.kernelspec import NoSuchKernel

    path = Path(path)
    try:
        notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise NotebookError(f"{path}: cannot be read as a notebook: {error}") from error
    cells = [index for index, cell in enumerate(notebook.cells) if cell.cell_type == "code"]
    current, notify = [0], on_progress or ignore

    def on_cell_start(cell: Any, cell_index: int) -> None:
        current[0] = cell_index
        if cell_index in cells:
            first = (cell.source.strip().splitlines() or [""])[0]
            notify(Progress("notebook", cells.index(cell_index), len(cells), first))

    client = nbclient.NotebookClient(
        notebook,
        timeout=None,
        kernel_name="python3",
        resources={"metadata": {"path": str(path.parent.absolute())}},
        on_cell_start=on_cell_start,
        # warnings of the kernel itself do not concern the notebook
        extra_arguments=["--IPKernelApp.log_level=ERROR"],
    )
    try:
        client.execute()
        notify(Progress("notebook", len(cells), len(cells)))
    except nbclient.exceptions.CellExecutionError as error:
        raise NotebookError(_failure(path, current[0], error.ename, error.evalue)) from error
    except (nbclient.exceptions.DeadKernelError, NoSuchKernel) as error:
        raise NotebookError(f"{path}: its kernel died: {error}; run it again") from error
    finally:
        _write(notebook, path)


def _fill(notebook: NotebookNode, recipe: Recipe, values: dict[str, str | bool]) -> None:
    for cell in notebook.cells:
        tags = cell.metadata.get("tags", [])
        if _TITLE in tags:
            _, _, body = cell.source.partition("\n")
            summary = _plain(recipe.description)
            title = f"# {_plain(recipe.site.title or recipe.name)}\n"
            cell.source = title + (f"\n{summary}\n" if summary else "") + body
        if _PARAMETERS in tags:
            cell.source = "\n".join(_assign(line, values) for line in cell.source.splitlines())


def _assign(line: str, values: dict[str, str | bool]) -> str:
    name = line.partition("=")[0].strip()
    return f"{name} = {values[name]!r}" if name in values else line


def _plain(text: str) -> str:
    return _MARKUP.sub(lambda match: f"\\{match[0]}", " ".join(text.split()))


def _write(notebook: NotebookNode, path: Path) -> None:
    import nbformat

    try:
        nbformat.write(notebook, path)  # type: ignore[no-untyped-call]
    except OSError as error:
        raise NotebookError(
            f"{path}: cannot be written: {error.strerror}; name another place with --output"
        ) from error


def _failure(path: Path, index: int, name: str, message: str) -> str:
    line = " ".join(_ANSI.sub("", message).split())
    if len(line) > _MAX_LENGTH:
        line = line[:_MAX_LENGTH] + "…"
    return (
        f"{path}: cell {index + 1} failed: {name}: {line}. Open the notebook to see it; "
        "the output of earlier cells is kept there"
    )
