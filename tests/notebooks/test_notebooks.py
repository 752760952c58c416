"""The notebooks run from top to bottom in a fresh kernel, offline, and are kept without output."""

import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

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


PANEL = "application/vnd.jupyter.widget-view+json"
PLOT = "image/svg+xml <svg"
OUTPUTS = {
    "01": {
        "report = kbkit.build": ">kbkit-docs</td>",
        "hits = kb.search": "<table>",
        "SearchPanel(ws)": PANEL,
        "panel.hits.to_frame()": "Panels",
        "kb.rate(": "just what I was looking for",
    },
    "02": {
        '"hybrid", "dense", "lexical"': "Security",
        "hits.to_frame()": "heading_match",
        "kb.similar(": "3 hits",
        "citation()": "fetched",
        "slip": "the right page, the wrong part",
        "after = kb.search": "from ratings",
        "kb.plot.ratings()": PLOT,
        "%kb search": "3 hits",
        "%kb rate": "5 of 5",
    },
    "03": {
        "evaluation = kb.feedback.evaluate(questions)": "ndcg@10",
        'against="lexical"': "p_value",
        "without_titles": "against_ndcg@10",
        "pool = kb.feedback.pool": "heading_path",
        "kb.feedback.judgements()": "Judgements",
        "report = kb.feedback.tune": "on held-out queries",
        "report.to_yaml()": "dense_weight:",
        "JudgePanel(": PANEL,
        "EvalPanel(": PANEL,
    },
    "04": {
        "report = kb.ingest(\n    FilesSource": "8 new documents",
        "error E7": "manual, page 3",
        "wind speed sensor": "W1",
        "between two moments": "`since`",
        "old readings": "station archive --before 2021-01-01",
        "kb.plot.map(": PLOT,
        "half.pdf": "table.xlsx - ",
    },
    "05": {
        "report = kb.refresh()": "1 new, 1 changed, 1 same, 1 gone",
        '"state", "fetched_at"': "gone",
        "kb.plot.documents()": PLOT,
        "exported = kb.export()": "pages/files/handbook/secrets.html",
        "serve_site": "The handbook",
    },
    "06": {
        "limit=3)": "No language model is set",
        "Settings.llm = MockLLM()": "[1]\n<quote-",
        "%%kb ask": "answered by MockLLM",
        "engine.query(": "Context information is below",
        "source_nodes": "Recipes > Chunking",
        "kb.as_tool(": "search_guides",
        "tool.call(": "quoted from documents",
    },
    "07": {
        "ws.to_frame()": "llama-index:trigrams:Trigrams",
        'default = ws["by-default"]': "p_value",
        ".rename(columns": "by spelling",
        "import trigrams": "0 calls of the model",
    },
    "08": {
        "draft = draft_recipe": "/de/**  # a translation",
        "check_recipe(": "golden questions; 8 or more",
        "report = kbkit.build": ">looms</td>",
        '"document_type", "uri"': "Mending",
        "report.evaluation": "the thread has snapped",
    },
    "09": {
        "list_recipes()": "flask",
        "copy_recipe(": "type: package",
        "kbkit.build(": "httpx",
        "send a name and a password": "Auth",
        "report.evaluation": "go through a proxy",
    },
    "10": {
        "kb.annotations.statement_types": "taxonomy",
        'ws.about("httpx.Timeout")': "httpx.Timeout",
        'filters={"entity": "httpx.Timeout"}': "Timeout",
        "value_counts()": "contains",
        "graph.neighbors(": "httpx.ConnectTimeout > httpx > httpx.Client",
        "graph.undo()": "undone: related",
        "graph.gaps(": "unanswered: httpx.Limits",
        "ws.context(": "[1]",
    },
    "11": {
        "print(files.tree())": "firing.md",
        "why does a bowl crack": "Slowly up to 600",
        "files.backlinks(": "not there yet: ['Glaze']",
        "if_match=seen.version": "was changed since you read it",
        'files.read("kb/pottery/': "1250 degrees",
        "memory.handle(call)": "1. throw: done",
        "FilesPanel(ws)": PANEL,
        "ws.entries.list()": "★★★★★    Fire stoneware",
        "ws.entries.learn(": "mix-a-celadon-glaze auto task-7",
        "EntriesPanel(ws)": PANEL,
        "files=True, entries=True": "['entries', 'files'",
    },
    "12": {
        "server = subprocess.Popen": "serving FOLDER at http://127.0.0.1:",
        "ws = kbkit.connect(url)": "At 75 degrees",
        "kb.rate(": "'coffee'",
        "SearchPanel(ws)": PANEL,
        "ws.entries.create(": "Brew tea for many",
        "token = subprocess.run": "ForbiddenError: this needs the scope write",
        "Client(streamable_http_client": "search_knowledge_base",
        "AsyncWorkspace": "['Green tea', 'Black tea']",
        "server.terminate()": "[[5, 'ann']] 2 documents",
    },
}
"""What cells put out, by a part of their source."""


@pytest.mark.parametrize(
    "start",
    [
        pytest.param(start, marks=pytest.mark.slow if start == "10" else pytest.mark.soak)
        for start in OUTPUTS
    ],
)
def test_notebook_runs(start: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """It runs where it lies; a cell that fails raises its error."""
    monkeypatch.setenv("KBKIT_WORKSPACE", str(tmp_path / "kb"))
    monkeypatch.setenv("KBKIT_RATER", "notebook")
    (path,) = NOTEBOOKS.glob(f"{start}*.ipynb")
    client = NotebookClient(
        nbformat.read(path, as_version=4),
        timeout=240,
        kernel_name="python3",
        resources={"metadata": {"path": path.parent}},
        extra_arguments=["--IPKernelApp.log_level=ERROR"],
    )
    cells = [cell for cell in client.execute().cells if cell.cell_type == "code"]
    for part, text in OUTPUTS[start].items():
        (cell,) = [cell for cell in cells if part in cell.source]
        pieces = [output.get("text", "") for output in cell.outputs]
        for output in cell.outputs:
            pieces += [f"{kind} {value}" for kind, value in output.get("data", {}).items()]
        assert text in "\n".join(pieces), part


@pytest.mark.soak
def test_the_notebook_of_a_recipe(tmp_path: Path):
    """As the command line writes and runs it, next to a recipe of one page."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/tea.md").write_text("# Tea\n\nHot water and leaves.\n", encoding="utf-8")
    (tmp_path / "drinks.yaml").write_text(
        "name: drinks\nsources: [{type: files, path: docs}]\n"
        "questions: [{question: how is tea made, relevant: [tea.md]}]\n",
        encoding="utf-8",
    )
    command = ["-m", "kbkit", "notebook", "drinks.yaml", "--workspace", "kb", "--run"]
    done = subprocess.run(
        [sys.executable, *command], check=False, capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert "wrote drinks.ipynb" in done.stderr
    text = (tmp_path / "drinks.ipynb").read_text("utf-8")
    assert ">drinks</td>" in text
    assert "how is tea made" in text
    assert text.count('"image/svg+xml"') == 3
    assert PANEL in text
    assert (tmp_path / "kb/export/drinks/site/index.html").is_file()
