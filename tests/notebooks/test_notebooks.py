"""The notebooks run from top to bottom in a fresh kernel, offline, and are kept without output."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
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


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Notebook]:
    """Runs a notebook, given by how its name begins, in a workspace of its own."""
    monkeypatch.setenv("KBKIT_WORKSPACE", str(tmp_path / "kb"))
    monkeypatch.setenv("KBKIT_RATER", "notebook")

    def run(start: str) -> Notebook:
        (path,) = NOTEBOOKS.glob(f"{start}*.ipynb")
        return Notebook(path)

    return run


class Notebook:
    """A notebook that has been run where it lies; a cell that fails raises its error here."""

    def __init__(self, path: Path) -> None:
        notebook = nbformat.read(path, as_version=4)
        client = NotebookClient(
            notebook,
            timeout=240,
            kernel_name="python3",
            resources={"metadata": {"path": path.parent}},
            extra_arguments=["--IPKernelApp.log_level=ERROR"],
        )
        self.cells = client.execute().cells

    def output(self, part: str) -> str:
        """All that the one cell whose source has this part put out, as text and HTML."""
        [cell] = [cell for cell in self.cells if cell.cell_type == "code" and part in cell.source]
        pieces = []
        for output in cell.outputs:
            assert output.output_type != "error"
            pieces += [output.get("text", "")]
            pieces += [f"{kind} {value}" for kind, value in output.get("data", {}).items()]
        return "\n".join(pieces)


PANEL = "application/vnd.jupyter.widget-view+json"
PLOT = "image/svg+xml <svg"


@pytest.mark.soak  # `make publish` builds the guides, tests/workflows/test_builder.py recipes
def test_build_a_knowledge_base(run, tmp_path: Path):
    notebook = run("01")
    assert ">kbkit-docs</td>" in notebook.output("report = kbkit.build")
    # Nothing, unless somebody edits kbkit's own documentation at this moment.
    embedded = re.search(r"(\d+) chunks embedded", notebook.output("again = kbkit.build"))
    assert embedded is not None
    assert int(embedded[1]) < 50
    assert "<table>" in notebook.output("hits = kb.search")
    assert PANEL in notebook.output("SearchPanel(ws)")
    assert "Panels" in notebook.output("panel.hits.to_frame()")  # the guide to them
    assert "just what I was looking for" in notebook.output("kb.rate(")
    with kbkit.open(tmp_path / "kb") as ws:
        kb = ws["kbkit-docs"]
        assert len(kb.documents.to_frame()) > 100
        assert kb.ratings.to_frame()[["score", "rater"]].values.tolist() == [[5, "notebook"]]
        site = ws.path / "export" / kb.name
    assert len(list(site.rglob("*.md"))) > 100
    assert list(site.rglob("index.html"))


@pytest.mark.soak
def test_search_and_rate(run, tmp_path: Path):
    notebook = run("02")
    assert "Security" in notebook.output('"hybrid", "dense", "lexical"')
    assert "heading_match" in notebook.output("hits.to_frame()")
    assert "3 hits" in notebook.output("kb.similar(")
    assert "fetched" in notebook.output("citation()")
    assert "the right page, the wrong part" in notebook.output("slip")
    assert "from ratings" in notebook.output("after = kb.search")
    assert PLOT in notebook.output("kb.plot.ratings()")
    assert "3 hits" in notebook.output("%kb search")
    assert "5 of 5" in notebook.output("%kb rate")
    assert PANEL in notebook.output("SearchPanel(ws)")
    with kbkit.open(tmp_path / "kb") as ws:
        assert ws["guides"].ratings.to_frame()["score"].tolist() == [2, 5, 5]


@pytest.mark.soak
def test_judge_evaluate_and_tune(run):
    notebook = run("03")
    assert "ndcg@10" in notebook.output("evaluation = kb.feedback.evaluate(questions)")
    assert "p_value" in notebook.output('against="lexical"')
    assert "against_ndcg@10" in notebook.output("without_titles")
    assert "heading_path" in notebook.output("pool = kb.feedback.pool")
    assert "Judgements" in notebook.output("kb.feedback.judgements()")
    assert "on held-out queries" in notebook.output("report = kb.feedback.tune")
    assert "dense_weight:" in notebook.output("report.to_yaml()")
    assert PANEL in notebook.output("JudgePanel(")
    assert PANEL in notebook.output("EvalPanel(")


@pytest.mark.soak
def test_files_pdfs_and_openapi(run):
    notebook = run("04")
    assert "8 new documents" in notebook.output("report = kb.ingest(\n    FilesSource")
    assert "manual, page 3" in notebook.output("error E7")
    assert "W1" in notebook.output("wind speed sensor")
    assert "`since`" in notebook.output("between two moments")
    assert "station archive --before 2021-01-01" in notebook.output("old readings")
    assert PLOT in notebook.output("kb.plot.map(")
    assert "half.pdf - " in notebook.output("half.pdf")
    assert "table.xlsx - " in notebook.output("half.pdf")


@pytest.mark.soak
def test_refresh_and_publish(run):
    notebook = run("05")
    assert "1 new, 1 changed, 1 same, 1 gone" in notebook.output("report = kb.refresh()")
    assert "gone" in notebook.output('"state", "fetched_at"')
    assert PLOT in notebook.output("kb.plot.documents()")
    assert "pages/files/handbook/secrets.html" in notebook.output("exported = kb.export()")
    assert "pager" not in notebook.output("exported = kb.export()")
    assert "The handbook" in notebook.output("serve_site")


@pytest.mark.soak
def test_ask_with_a_language_model(run):
    notebook = run("06")
    assert "No language model is set" in notebook.output("limit=3)")
    assert "[1]\n<quote-" in notebook.output("Settings.llm = MockLLM()")
    assert "answered by MockLLM" in notebook.output("%%kb ask")
    assert "Context information is below" in notebook.output("engine.query(")
    assert "Recipes > Chunking" in notebook.output("source_nodes")
    assert "search_guides" in notebook.output("kb.as_tool(")
    assert "quoted from documents" in notebook.output("tool.call(")


@pytest.mark.soak
def test_bring_your_own_embedder(run):
    notebook = run("07")
    assert "llama-index:trigrams:Trigrams" in notebook.output("ws.to_frame()")
    assert "p_value" in notebook.output('default = ws["by-default"]')
    assert "by spelling" in notebook.output(".rename(columns")
    assert "0 calls of the model" in notebook.output("import trigrams")


@pytest.mark.soak
def test_a_web_site(run):
    notebook = run("08")
    draft = notebook.output("draft = draft_recipe")
    assert "made by MkDocs" in draft
    assert "/de/**  # a translation" in draft
    assert "golden questions; 8 or more" in notebook.output("check_recipe(")
    assert ">looms</td>" in notebook.output("report = kbkit.build")
    documents = notebook.output('"document_type", "uri"')
    assert "Mending" in documents
    assert "Flicken" not in documents
    assert "the thread has snapped" in notebook.output("report.evaluation")


@pytest.mark.soak
def test_a_python_package(run):
    notebook = run("09")
    assert "flask" in notebook.output("list_recipes()")
    assert "type: package" in notebook.output("copy_recipe(")
    assert "httpx" in notebook.output("kbkit.build(")
    assert "Auth" in notebook.output("send a name and a password")
    assert "go through a proxy" in notebook.output("report.evaluation")


@pytest.mark.slow
def test_knowledge(run, tmp_path: Path):
    notebook = run("10")
    assert "taxonomy" in notebook.output("kb.annotations.statement_types")
    assert "httpx.Timeout" in notebook.output('ws.about("httpx.Timeout")')
    assert "Timeout" in notebook.output('filters={"entity": "httpx.Timeout"}')
    assert "contains" in notebook.output("value_counts()")
    steps = notebook.output("graph.neighbors(")
    assert "inherits TimeoutException" in steps
    assert "httpx.ConnectTimeout > httpx > httpx.Client" in steps
    assert "undone: related" in notebook.output("graph.undo()")
    assert "unanswered: httpx.Limits" in notebook.output("graph.gaps(")
    assert "[1]" in notebook.output("ws.context(")
    with kbkit.open(tmp_path / "kb") as ws:
        assert ws.graph.entity("connection pool").made_by == "notebook"


@pytest.mark.soak
def test_files_and_entries(run, tmp_path: Path):
    notebook = run("11")
    assert "firing.md" in notebook.output("print(files.tree())")
    assert "Slowly up to 600" in notebook.output("why does a bowl crack")
    links = notebook.output("files.backlinks(")
    assert "linked from: ['plans/bowl.md']" in links
    assert "not there yet: ['Glaze']" in links
    versions = notebook.output("if_match=seen.version")
    assert "was changed since you read it" in versions
    assert "log.md is back" in versions
    assert "1250 degrees" in notebook.output('files.read("kb/pottery/')
    agent = notebook.output("memory.handle(call)")
    assert "/memories" in agent
    assert agent.count("error: ") == 2
    assert "1. throw: done" in agent
    assert PANEL in notebook.output("FilesPanel(ws)")
    entries = notebook.output("ws.entries.list()")
    assert entries.index("★★★★★    Fire stoneware") < entries.index("★★☆☆☆    Throw a bowl")
    learned = notebook.output("ws.entries.learn(")
    assert "mix-a-celadon-glaze auto task-7" in learned
    assert "Recipe of a green glaze by weight" in learned
    assert PANEL in notebook.output("EntriesPanel(ws)")
    assert "['entries', 'files'" in notebook.output("files=True, entries=True")
    with kbkit.open(tmp_path / "kb") as ws:
        assert ws.files.read("agent/progress.md").startswith("# Bowls\n\nFor Ann.\n")
        assert ws.entries.read("fire-stoneware-without-cracks").rating.count == 3


@pytest.mark.soak
def test_a_server(run, tmp_path: Path):
    notebook = run("12")
    assert "serving FOLDER at http://127.0.0.1:" in notebook.output("server = subprocess.Popen")
    assert "At 75 degrees" in notebook.output("ws = kbkit.connect(url)")
    assert "'coffee'" in notebook.output("kb.rate(")
    assert PANEL in notebook.output("SearchPanel(ws)")
    assert "Brew tea for many" in notebook.output("ws.entries.create(")
    refused = notebook.output("token = subprocess.run")
    assert refused.startswith("3 hits\n")
    assert "ForbiddenError: this needs the scope write" in refused
    assert "is not for 'files', but for tea" in refused
    assert "TokenError: a token is needed" in refused
    agent = notebook.output("Client(streamable_http_client")
    assert "search_knowledge_base" in agent
    assert "rate_chunk" not in agent
    assert re.search(r"<quote-\d+>\ntitle: Green tea", agent)
    assert "['Green tea', 'Black tea']" in notebook.output("AsyncWorkspace")
    assert "[[5, 'ann']] 2 documents" in notebook.output("server.terminate()")
    with kbkit.open(tmp_path / "kb") as ws:
        assert "Uji" in ws.files.read("notes/green.md")


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
