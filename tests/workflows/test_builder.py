"""Builds of recipes: the first, and after each kind of change."""

import json
import os
import re
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import yaml

import kbkit
from kbkit.errors import ConflictError, RecipeError
from kbkit.models import IngestReport, Problem
from kbkit.testing import serve_folder
from kbkit.workflows.builder import build

PAGE = """<!doctype html><html lang="en"><head><title>{title}</title></head><body><main>
<h1>{title}</h1><p>{text}</p><h2 id="more">More about {title}</h2><p>There is more to say about
{title}, and a whole <a href="{link}">page on others</a> as well.</p></main></body></html>"""
PAGES = {
    "index.html": ("Home", "Welcome to the house of tea and of bread.", "tea.html"),
    "tea.html": ("Tea", "Black tea steeps for four minutes.", "bread.html"),
    "bread.html": ("Bread", "Bread is baked for an hour.", "index.html"),
}
NOTES = {"plums.md": "# Plums\n\nPlums are blue.\n", "pears.md": "# Pears\n\nPears are green.\n"}


class House:
    """A recipe with its folder, site and workspace."""

    def __init__(self, folder, url, requests):
        self.folder, self.url, self.requests = folder, url, requests
        self.recipe = folder / "recipe.yaml"
        self.values = {
            "name": "house",
            "description": "Tea & bread",
            "sources": [
                {"type": "crawl", "url": url, "allow_private": True},
                {"type": "files", "path": "notes/*.md"},
            ],
            "questions": "questions.tsv",
        }
        (folder / "questions.tsv").write_text(
            "how long does black tea steep\ttea.html\nwhat colour are plums\tplums.md,pears.md\n"
        )

    def write(self, name, text):
        """Write a page a minute later than before, for the server's Last-Modified."""
        path = self.folder / "pages" / name
        title, _, link = PAGES[name]
        before = path.stat().st_mtime if path.exists() else 1.7e9
        path.write_text(PAGE.format(title=title, text=text, link=link))
        os.utime(path, (before + 60, before + 60))

    def build(self, **options):
        self.recipe.write_text(yaml.safe_dump(self.values))
        self.requests.clear()
        return build(self.recipe, self.folder / "kb", **{"site": False, "trust": True, **options})

    def open(self):
        return kbkit.open(self.folder / "kb")

    def titles(self):
        with self.open() as workspace:
            return {d.title for d in workspace["house"].documents if d.state != "gone"}


@pytest.fixture
def house(tmp_path):
    requests = []
    (tmp_path / "pages").mkdir()
    (tmp_path / "notes").mkdir()
    for name, text in NOTES.items():
        (tmp_path / "notes" / name).write_text(text)
    with serve_folder(tmp_path / "pages", on_request=requests.append) as url:
        house = House(tmp_path, url, requests)
        for name, (_, text, _) in PAGES.items():
            house.write(name, text)
        yield house


def counts(report):
    ingest = report.ingest
    return ingest.new, ingest.changed, ingest.same, ingest.gone


def test_build_reports_its_work(house):
    steps = []
    report = house.build(on_progress=steps.append)
    assert counts(report) == (5, 0, 0, 0)
    assert (report.info.name, report.info.documents) == ("house", 5)
    assert report.info.chunks == report.ingest.chunks_added > 5
    assert 0 < report.ingest.chunks_embedded <= report.ingest.chunks_added
    assert report.ingest.failed == report.ingest.skipped == ()
    assert not report.ingest.interrupted
    assert {"crawl", "chunk", "embed", "store", "index", "evaluate", "total"} <= set(report.seconds)
    parts = sum(value for stage, value in report.seconds.items() if stage != "total")
    assert parts <= report.seconds["total"] + 0.1
    last = {progress.stage: progress for progress in steps}
    assert {"crawl", "index", "evaluate"} <= set(last)
    assert (last["evaluate"].done, last["evaluate"].total) == (2, 2)
    assert report.folder is None
    assert report.site is None


def test_report_is_json_lines_and_html(house):
    report = house.build()
    assert len(report.evaluation.results) == 2
    assert report.evaluation.hit_at_1 == 1
    assert report.evaluation.ndcg > 0.8
    values = json.loads(json.dumps(report.to_dict()))
    assert (values["new"], values["documents"], values["name"]) == (5, 5, "house")
    assert values["evaluation"]["queries"] == 2
    lines = dict(report.lines())
    assert lines["documents"] == "5 (5 new, 0 changed, 0 same, 0 gone)"
    assert lines["questions"].startswith("2: nDCG@10 ")
    assert "total" in lines["seconds"]
    assert "site" not in lines
    nasty = "<script>alert(1)</script>"
    problems = tuple(Problem(f"http://x/{n}", nasty) for n in range(1500))
    report = replace(report, ingest=IngestReport(failed=problems))
    assert dict(report.lines())["failed"] == f"http://x/0 and 1,499 more: {nasty}"
    shown = report._repr_html_()
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown
    del house.values["questions"]
    assert house.build().evaluation is None


@pytest.mark.slow
@pytest.mark.parametrize("shared", ["folder", "database"])
def test_concurrent_build_is_refused(house, shared, request, monkeypatch):
    if shared == "database":
        if os.environ.get("KBKIT_TEST_DATABASE"):
            pytest.skip("each folder has a database of its own")
        server = request.getfixturevalue("postgres")
        monkeypatch.setenv("KBKIT_DATABASE_URL", server.catalog())
    other = house.folder / ("kb" if shared == "folder" else "elsewhere")
    refused = []

    def begin_another(progress):
        if not refused:
            with pytest.raises(ConflictError) as caught:
                build(house.recipe, other, site=False, trust=True)
            refused.append(str(caught.value))

    report = house.build(on_progress=begin_another)
    message = "another process is building house; wait for it to end, and run this again"
    assert refused == [message]
    assert counts(report) == (5, 0, 0, 0)
    again = build(house.recipe, other, site=False, trust=True)
    assert again.info.documents == 5
    assert counts(again)[0] == 0


def test_second_build_does_nothing(house):
    house.build()
    report = house.build()
    assert counts(report) == (0, 0, 5, 0)
    assert (report.ingest.chunks_embedded, report.ingest.chunks_added) == (0, 0)
    # the server answered that nothing changed
    assert "/tea.html" in house.requests
    assert report.ingest.fetched <= len(NOTES)


def test_build_processes_only_changes(house):
    house.build()
    house.write("tea.html", "Green tea steeps for two minutes.")
    (house.folder / "notes" / "figs.md").write_text("# Figs\n\nFigs are purple.\n")
    report = house.build()
    assert counts(report) == (1, 1, 4, 0)
    assert report.ingest.fetched <= 2 + len(NOTES)
    assert report.ingest.chunks_embedded == report.ingest.chunks_added == 2
    assert report.ingest.chunks_removed == 1
    with house.open() as workspace:
        assert "two minutes" in workspace["house"].search("green tea steeps")[0].chunk.text


def test_documents_removed_from_their_source_are_gone(house):
    house.build()
    (house.folder / "notes" / "pears.md").unlink()
    (house.folder / "pages" / "bread.html").unlink()
    report = house.build()
    assert counts(report) == (0, 0, 3, 2)
    assert house.titles() == {"Home", "Tea", "Plums"}


def test_documents_of_a_dropped_source_are_removed(house):
    house.build()
    with house.open() as workspace:
        workspace["house"].add("Mine", "Added by hand.")
    del house.values["sources"][0]
    house.values["questions"] = []
    house.values["description"] = "Other words"
    report = house.build()
    assert house.titles() == {"Plums", "Pears", "Mine"}
    assert report.info.documents == 3
    assert report.info.description == "Other words"
    assert "crawl" not in report.info.source_types
    assert house.requests == []


def test_new_chunking_fetches_nothing(house):
    house.write("tea.html", "Tea is a drink. " * 60)
    before = house.build()
    house.values["chunking"] = {"size": 200}
    report = house.build()
    assert report.info.chunks > before.info.chunks
    assert report.ingest.fetched <= len(NOTES)
    assert report.ingest.chunks_embedded > 0
    assert {"chunk", "embed"} <= report.seconds.keys()
    assert counts(report) == (0, 0, 5, 0)
    with house.open() as workspace:
        kb = workspace["house"]
        assert max(len(chunk.text) for chunk in kb.chunks) <= 200
        assert kb.search("how long does black tea steep")


def test_new_embedding_reads_no_source_again(house):
    before = house.build().info
    house.values["embedding"] = {
        "type": "llama-index",
        "model": "llama_index.core.embeddings.mock_embed_model:MockEmbedding",
        "arguments": {"embed_dim": 8},
    }
    report = house.build()
    assert (before.dimensions, report.info.dimensions) == (256, 8)
    assert report.ingest.chunks_embedded > 0
    assert (report.ingest.new, report.ingest.changed) == (0, 0)
    with house.open() as workspace:
        assert workspace["house"].search("how long does black tea steep")


def closed_port():
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        return server.server_port


def test_unreadable_sources_are_reported_and_others_read(house):
    down = f"http://127.0.0.1:{closed_port()}/"
    house.values["sources"][:0] = [
        {"type": "crawl", "url": down, "allow_private": True},
        {"type": "jsonl", "path": "none.jsonl"},
        {"type": "package", "name": "no_such_package"},
    ]
    report = house.build()
    assert counts(report) == (5, 0, 0, 0)
    reasons = {problem.uri: problem.reason for problem in report.ingest.failed}
    assert reasons.keys() == {down, "none.jsonl", "no_such_package"}
    assert "cannot connect" in reasons[down]
    shown = [value for label, value in report.lines() if label == "failed"]
    assert len(shown) == 3


def test_unreachable_site_loses_no_document(house):
    with serve_folder(house.folder / "pages") as other:
        house.values["sources"][0]["url"] = other
        house.build()
    report = house.build()
    assert report.ingest.gone == 0
    assert report.ingest.failed
    assert {"Home", "Tea", "Bread"} <= house.titles()
    with house.open() as workspace:
        assert "four minutes" in workspace["house"].search("black tea steeps")[0].chunk.text


def test_stopped_build_continues(house):
    house.values["sources"].reverse()
    done = []
    first = house.build(site=True, on_progress=done.append, stop=lambda: len(done) >= 3)
    assert first.ingest.interrupted
    assert 0 < first.ingest.new < 5
    assert (first.evaluation, first.site, first.folder) == (None, None, None)
    second = house.build()
    assert not second.ingest.interrupted
    assert first.ingest.new + second.ingest.new == 5
    assert second.evaluation.hit_at_1 == 1
    assert counts(house.build()) == (0, 0, 5, 0)


def test_stopped_chunking_is_completed_by_the_next_build(house):
    before = house.build().info.chunks
    house.values["chunking"] = {"size": 100}
    house.build(stop=lambda: True)
    assert house.build().info.chunks > before
    with house.open() as workspace:
        assert workspace["house"].spec.chunking.size == 100


def test_invalid_questions_fail_before_the_build(house):
    (house.folder / "questions.tsv").write_text("no tab here\n")
    with pytest.raises(RecipeError, match=r"questions\.tsv:1"):
        house.build()
    assert house.requests == []
    assert not (house.folder / "kb").exists()


def test_loaded_recipe_builds_into_an_open_workspace(house):
    house.recipe.write_text(yaml.safe_dump(house.values))
    recipe = kbkit.load_recipe(house.recipe)
    with house.open() as workspace:
        assert build(recipe, workspace, site=False, trust=True).info.documents == 5
        assert "house" in workspace  # still open


def searchable(site):
    """Return all texts of the search of a built site."""
    return "".join(path.read_text("utf-8") for path in site.glob("**/x/*.js"))


@pytest.mark.slow
def test_site_is_built_and_rebuilt(house):
    house.values["site"] = {"title": "The House", "directory": "out"}
    report = house.build(site=True)
    assert report.folder == house.folder / "out"
    assert (report.site / "index.html").is_file()
    home = (report.site / "index.html").read_text()
    assert "The House" in home
    assert 'action="search/index.html"' in home
    assert re.search(r"<li>what colour are plums → <a href=\"[^\"]*plums.html\">Plums</a>", home)
    assert "Black tea steeps for four minutes" in searchable(report.site)
    assert report.seconds["site"] > 0
    assert dict(report.lines())["site"] == str(report.site / "index.html")
    house.write("tea.html", "Green tea steeps for two minutes.")
    (house.folder / "notes" / "pears.md").unlink()
    report = house.build(site=True)
    texts = searchable(report.site)
    assert "Green tea steeps for two minutes" in texts
    assert "Black tea" not in texts
    assert "Pears are green" not in texts
