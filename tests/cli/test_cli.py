"""The command line in this process."""

import json
import re
import sqlite3
import sys
import tempfile
from dataclasses import replace
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import typer
import yaml

import kbkit
from kbkit import cli
from kbkit.cli import load_commands
from kbkit.recipes import KnowledgeBaseSpec
from kbkit.testing import serve_folder

PAGE = """<!doctype html><html lang="en"><head><title>{title}</title></head><body><main>
<h1>{title}</h1><p>{text}</p><h2 id="more">More about {title}</h2><p>There is more to say about
it, and a whole <a href="{link}">page on something else</a> as well.</p></main></body></html>"""
PAGES = {
    "index.html": ("Home", "Welcome to the house of tea and of bread.", "guide/tea.html"),
    "guide/tea.html": ("Tea", "Black tea steeps for four minutes.", "bread.html"),
    "guide/bread.html": ("Bread", "Bread is baked for an hour at 220 degrees.", "../other.html"),
    "other.html": ("Other", "Nothing of interest is said on this page.", "index.html"),
}
REPORT_KEYS = {"new", "changed", "same", "gone", "failed", "skipped", "chunks_embedded", "seconds"}


@pytest.fixture
def run(run_kbkit):
    def call(*arguments, workspace=None):
        before = [] if workspace is None else ["--workspace", workspace]
        return run_kbkit(*before, *arguments)

    return call


@pytest.fixture
def here(tmp_path, monkeypatch, run):
    """Runs commands in an empty folder, on the workspace ``kb`` in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KBKIT_WORKSPACE", raising=False)
    return run


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    (folder / "guide").mkdir()
    for name, (title, text, link) in PAGES.items():
        (folder / name).write_text(PAGE.format(title=title, text=text, link=link))
    return folder


@pytest.fixture(scope="module")
def site(pages):
    with serve_folder(pages) as url:
        yield url


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A workspace with two knowledge bases, for commands that change nothing."""
    folder = tmp_path_factory.mktemp("filled") / "kb"
    with kbkit.open(folder) as workspace:
        drinks = workspace.create("drinks", description="All about drinks")
        drinks.add(
            "Tea",
            "# Tea\n\n## Black tea {#black}\n\nBlack tea steeps for four minutes.\n",
            source="http://x.org/tea.html",
            tags=["hot"],
        )
        milk = drinks.add("Milk", "# Milk\n\nMilk is kept cold.\n", source="http://x.org/milk.html")
        drinks.rate(milk.id, 4, rater="ann")
        workspace.create("food").add("Bread", "# Bread\n\nBread is baked. [b]ø 🍞[/b]\n")
    return folder


@pytest.fixture
def ask(run, filled):
    """Runs commands that change nothing on the workspace with two knowledge bases."""
    return partial(run, workspace=filled)


@pytest.fixture
def fruit(tmp_path):
    """A document and a recipe that reads it, in the folder of commands."""
    (tmp_path / "a.md").write_text("# Apples\n\nApples are red.\n")
    (tmp_path / "recipe.yaml").write_text(
        "name: fruit\nsources: [{type: files, path: '*.md'}]\n"
        "questions: [{question: what colour are apples, relevant: [a.md]}]\n"
    )


def write_lines(path, *documents):
    path.write_text("".join(json.dumps(document) + "\n" for document in documents))
    return path


def uris(run, name):
    return sorted(line["uri"] for line in run("documents", name, "--jsonl").lines)


def test_global_option_after_the_command_is_explained(here):
    result = here("search", "tea", "--workspace", "kb")
    assert result.code == 2
    assert "before the command: kbkit --workspace ... search" in result.err


def test_site_is_crawled(here, site):
    outcome = here("new", "house", "--crawl", site, "--allow-private", "--json")
    assert outcome.code == 0
    assert outcome.json.keys() >= REPORT_KEYS
    assert outcome.json["new"] == len(PAGES)
    assert outcome.json["chunks_embedded"] > 0
    assert {"crawl", "embed", "store"} <= outcome.json["seconds"].keys()
    found = here("search", "how long does tea steep", "--json").json
    assert found[0]["uri"] == site + "guide/tea.html"


def test_limit_include_and_exclude_narrow_a_crawl(here, site):
    private = ("--crawl", site, "--allow-private")
    assert here("new", "a", *private, "--limit", "2").code == 0
    assert len(uris(here, "a")) == 2
    here("new", "b", *private, "--include", "/guide/*", "--exclude", "bread.html")
    assert uris(here, "b") == [site + "guide/tea.html"]
    here("new", "c", *private, "--exclude", "/guide/*", "--exclude", "/other*")
    assert [uri.removeprefix(site) for uri in uris(here, "c")] in ([""], ["index.html"])


def test_depth_and_labels_of_a_crawl(here, site):
    command = ("new", "a", "--crawl", site, "--allow-private", "--depth", "1", "--no-sitemap")
    labels = ("--type", "policy", "--tag", "house", "--license", "cc by 4.0")
    assert here(*command, *labels, "--attribution", "© Us").code == 0
    assert sorted(uri.removeprefix(site) for uri in uris(here, "a")) == ["", "guide/tea.html"]
    for document in here("documents", "a", "--jsonl").lines:
        assert (document["document_type"], document["tags"]) == ("policy", ["house"])
        assert (document["license"], document["attribution"]) == ("CC-BY-4.0", "© Us")


def test_options_apply_only_to_sources_that_have_them(here, site, tmp_path):
    (tmp_path / "a.md").write_text("# A\n\nWords.\n")
    crawl = ("--crawl", site, "--allow-private", "--depth", "0", "--delay", "0.01", "--no-sitemap")
    assert here("new", "a", *crawl, "--files", "a.md", "--concurrency", "1").code == 0
    assert len(uris(here, "a")) == 2
    assert "firecrawl" in here("new", "b", "--page", site, "--provider", "nobody").err


def test_one_page_is_read(here, site):
    url = site + "guide/tea.html"
    assert here("new", "tea", "--page", url, "--allow-private").code == 0
    assert uris(here, "tea") == [url]


def test_mirror_gets_the_addresses_of_its_base_url(here, pages):
    address = "https://docs.example.org/v1/"
    mirror = ("--mirror", pages, "--base-url", address)
    assert here("new", "m", *mirror, "--include", "/guide/*", "--json").json["new"] == 2
    assert uris(here, "m") == [address + "guide/bread.html", address + "guide/tea.html"]
    assert here("new", "one", *mirror, "--limit", "1", "--json").json["new"] == 1


def test_files_packages_and_lines_are_read_together(here, tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("# Apples\n\nApples are red.\n")
    (tmp_path / "docs" / "b.md").write_text("# Pears\n\nPears are green.\n")
    write_lines(
        tmp_path / "notes.jsonl",
        {
            "uri": "note:1",
            "title": "Plums",
            "text": "Plums are blue.",
            "tags": ["fruit"],
            "document_type": "faq",
            "metadata": {"by": "me"},
        },
    )
    sources = ("--files", "docs/*.md", "--jsonl", "notes.jsonl", "--package", "json")
    outcome = here("new", "all", *sources, "--limit", "2", "--description", "Ünïcode")
    assert outcome.code == 0
    assert outcome.out == ""  # what is for people goes to standard error
    assert "5 new" in outcome.err
    shown = here("show", "all", "--json").json
    assert shown["description"] == "Ünïcode"
    assert shown["source_types"] == ["files", "jsonl", "package"]
    found = {line["title"]: line for line in here("documents", "all", "--jsonl").lines}
    assert found["Plums"]["document_type"] == "faq"
    assert found["Plums"]["tags"] == ["fruit"]
    assert found["Apples"]["uri"].endswith("docs/a.md")
    assert sum(line["uri"].startswith("python:") for line in found.values()) == 2


def test_add_reads_more_into_a_knowledge_base(here, tmp_path):
    lines = write_lines(tmp_path / "a.jsonl", {"uri": "a", "title": "A", "text": "Apples."})
    assert "kbkit add" in here("new", "notes").err
    assert here("new", "others", "--json").json["new"] == 0
    report = here("add", "notes", "--jsonl", lines, "--json").json
    assert (report["new"], report["same"]) == (1, 0)
    report = here("add", "notes", "--jsonl", lines, "--json").json
    assert (report["new"], report["same"], report["chunks_embedded"]) == (0, 1, 0)


def test_refresh_reports_changes(here, tmp_path):
    write_lines(
        tmp_path / "a.jsonl",
        {"uri": "a", "title": "A", "text": "Apples."},
        {"uri": "b", "title": "B", "text": "Bananas."},
    )
    here("new", "notes", "--jsonl", "a.jsonl")
    write_lines(tmp_path / "a.jsonl", {"uri": "a", "title": "A", "text": "Red apples."})
    report = here("refresh", "notes", "--json").json
    assert report.keys() >= REPORT_KEYS
    assert (report["new"], report["changed"], report["same"], report["gone"]) == (0, 1, 0, 1)
    states = {line["uri"]: line["state"] for line in here("documents", "notes", "--jsonl").lines}
    assert states == {"a": "current", "b": "gone"}


def test_search_prints_hits_with_documented_keys(ask):
    hits = ask("search", "how long does black tea steep", "--json").json
    keys = "score kb document_id uri title heading_path anchor chunk_id text start end"
    assert hits[0].keys() >= set(keys.split())
    assert hits[0]["kb"] == "drinks"
    assert hits[0]["heading_path"] == ["Tea", "Black tea"]
    assert hits[0]["anchor"] == "black"
    assert "four minutes" in hits[0]["text"]
    assert hits[0]["end"] - hits[0]["start"] == len(hits[0]["text"])
    scores = [hit["score"] for hit in hits]
    assert scores == sorted(scores, reverse=True)
    assert len(ask("search", "bread tea milk", "--limit", "1", "--json").json) == 1


def test_context_is_printed_within_its_budget(ask, monkeypatch):
    outcome = ask("context", "how long does black tea steep", "--limit", "2")
    assert outcome.code == 0
    assert outcome.out.startswith("2 passages, best first. Text in <quote-")
    assert "source: http://x.org/tea.html#black\n" in outcome.out
    found = ask("context", "black tea", "--max-tokens", "200", "--json").json
    assert found["tokens"] <= found["max_tokens"] == 200
    assert found["pieces"][0]["citation"]["heading_path"] == ["Tea", "Black tea"]
    narrow = ask("context", "tea", "--kb", "food", "--json").json
    assert {piece["citation"]["kb"] for piece in narrow["pieces"]} <= {"food"}
    monkeypatch.setenv("KBKIT_TOP_K", "1")
    assert len(ask("context", "tea", "--json").json["pieces"]) == 1
    for few, says in (("20", "100 or more"), ("100", "too few for a passage with its source")):
        outcome = ask("context", "tea", "--max-tokens", few)
        assert (outcome.code, outcome.out) == (1, "")
        assert says in outcome.err


@pytest.mark.parametrize(
    ("options", "titles"),
    [
        (["--kb", "food"], {"Bread"}),
        (["--tag", "hot", "--tag", "cold"], set()),
        (["--type", "faq", "--type", "other"], {"Tea", "Milk", "Bread"}),
        (["--source", "http://x.org/"], {"Tea", "Milk"}),
        (["--path", "tea*"], {"Tea"}),
        (["--after", "2020-01-31"], {"Tea", "Milk", "Bread"}),
        (["--before", "2020-01-31T12:00:00+01:00"], set()),
        (["--state", "current", "--min-rating", "4", "--kb", "drinks"], {"Milk"}),
    ],
)
def test_search_filters(ask, options, titles):
    found = ask("search", "bread tea milk", *options, "--json").json
    assert {hit["title"] for hit in found} == titles


def test_search_notes_a_fallback(here, tmp_path):
    config = KnowledgeBaseSpec.model_validate({"retrieval": {"query_encoder": "fitted"}})
    with kbkit.open(tmp_path / "kb") as workspace:
        workspace.create("drinks", spec=config).add("Tea", "# Tea\n\nGreen tea.")
    note = "drinks: its model embedded the query, since no query encoder is fitted yet"
    outcome = here("search", "tea")
    assert f"note: {note}\n1 passage of 1 document in" in outcome.err
    outcome = here("search", "tea", "--json")
    assert outcome.json[0]["notes"] == [note]
    assert outcome.err == f"note: {note}\n"
    (tmp_path / "queries.txt").write_text("tea\n\ngreen\n")
    outcome = here("search", "--queries", "queries.txt", "--json")
    assert [len(hits) for hits in outcome.lines] == [1, 0, 1]
    assert outcome.err == f"note: {note}\n"


def test_document_text_cannot_control_the_terminal(here, tmp_path):
    page = tmp_path / "a.md"
    page.write_text(
        "# T\x1b[31mitle\n\nText \x1b[2J\x1b]0;owned\x07 \u202eof kettles \x9b1m.", "utf-8"
    )
    here("new", "k", "--files", str(page))
    for command in ("search", "context"):
        printed = here(command, "kettles").out
        assert "of kettles" in printed
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", printed)


def test_search_for_people_names_title_place_and_address(ask):
    outcome = ask("search", "black tea")
    assert outcome.code == 0
    assert re.search(r"1\. Tea  drinks\n.*\n    Black tea  \d", outcome.out)
    assert "http://x.org/tea.html#black" in outcome.out
    assert "passages of 3 documents in" in outcome.err
    assert "[b]ø 🍞[/b]" in ask("search", "bread").out, "text is not markup"


def test_document_is_printed_once_with_its_passages(here, tmp_path):
    (tmp_path / "a.md").write_text("# Tea\n\nTea is hot.\n\n## Milk\n\nTea with milk.\n")
    here("new", "drinks", "--files", "a.md")
    printed = here("search", "tea").out
    assert printed.count("Tea  drinks") == printed.count("a.md") == 1
    assert printed.count("Tea is hot.") == 1, "the description repeats a passage"
    assert "Tea with milk." in printed


def test_queries_of_a_file_print_one_list_a_line(ask, tmp_path):
    path = tmp_path / "queries.txt"
    path.write_text("\ufeffblack tea\n\nbread\u2028baked\r\ncold milk", encoding="utf-8")
    outcome = ask("search", "--queries", path, "--limit", "2", "--json")
    found = outcome.lines
    assert [hits[0]["title"] if hits else None for hits in found] == ["Tea", None, "Bread", "Milk"]
    assert all(len(hits) <= 2 for hits in found)
    lines = ask("search", "--queries", path, "--limit", "2", "--jsonl").lines
    assert [[hit["chunk_id"] for hit in hits] for hits in lines] == [
        [hit["chunk_id"] for hit in hits] for hits in found
    ]
    filtered = ask("search", "--queries", path, "--tag", "hot", "--json").lines
    assert [{hit["title"] for hit in hits} for hits in filtered] == [
        {"Tea"},
        set(),
        {"Tea"},
        {"Tea"},
    ]
    assert "--jsonl" in ask("search", "--queries", path).err
    path.write_text("")
    assert ask("search", "--queries", path, "--json").out == ""
    path.unlink()
    assert "text: No such file or directory" in ask("search", "--queries", path, "--json").err
    (hits,) = ask("search", "milk", "--jsonl").lines
    assert hits[0]["title"] == "Milk"


def test_list_and_show_print_figures(ask):
    drinks, food = ask("list", "--json").json
    assert (drinks["name"], food["name"]) == ("drinks", "food")
    shown = ask("show", "drinks", "--json").json
    assert shown == drinks
    assert (shown["documents"], shown["description"]) == (2, "All about drinks")
    assert shown["chunks"] >= 2
    assert shown["embedder"].startswith("static:")
    assert shown["states"] == {"current": 2, "stale": 0, "gone": 0}
    assert shown["created_at"] <= shown["updated_at"]
    assert "drinks" in ask("list").out
    assert "All about drinks" in ask("show", "drinks").out


def test_documents_are_listed_whole_or_by_line(ask):
    found = ask("documents", "drinks", "--jsonl").lines
    keys = "id uri title description document_type tags state metadata content"
    assert all(line.keys() == set(keys.split()) for line in found)
    assert found[1]["content"].startswith("# Tea")
    assert found[1]["tags"] == ["hot"]
    head, *plain = ask("documents", "drinks").out.splitlines()
    assert head.split() == ["document", "type", "state", "title", "uri"]
    assert [line.split()[-2:] for line in plain] == [[x["title"], x["uri"]] for x in found]
    listed = ask("documents", "drinks", "--json").json
    assert listed == [
        {k: v for k, v in x.items() if k not in ("metadata", "content")} for x in found
    ]


def commands():
    """Yield the path and the object of each command and group."""
    load_commands()
    waiting = [((), typer.main.get_command(cli.app))]
    while waiting:
        path, command = waiting.pop()
        waiting += [((*path, name), one) for name, one in getattr(command, "commands", {}).items()]
        if path:
            yield path, command


def test_help_fits_in_a_line():
    lines = {path: command.get_short_help_str(1_000) for path, command in commands()}
    assert len(lines) > 80
    assert [line for line in lines.values() if len(line) > 60 or line.count(";") > 1] == []


def test_number_out_of_range_is_refused(run):
    checked = 0
    for path, command in commands():
        for option in command.params:
            low, high = getattr(option, "min", None), getattr(option, "max", None)
            if option.param_type_name == "option" and (low, high) != (None, None):
                ends = [*([low - 1] if low is not None else []), *([high + 1] if high else [])]
                required = ["1" for each in command.params if each.required]
                for value in ("nope", *ends):
                    refused = run(*path, *required, f"{option.opts[0]}={value}")
                    assert refused.code == 2
                    message = r"'--[a-z-]+'[^:]*: must be (a valid (integer|number)|.* than)"
                    assert re.search(message, refused.err), (path, refused.err)
                    checked += 1
    assert checked > 60


def test_every_listing_prints_one_json_value(ask):
    listings = {
        path: command
        for path, command in commands()
        if (command.help or "").startswith("List ") and not hasattr(command, "commands")
    }
    assert {("list",), ("documents",), ("models", "list"), ("sources", "list")} <= set(listings)
    values = {"name": "drinks", "target": "http://x.org/milk.html"}
    for path, command in listings.items():
        arguments = [values[each.name] for each in command.params if each.required]
        outcome = ask(*path, *arguments, "--json")
        assert (outcome.code, type(outcome.json)) == (0, list), path


def test_documents_printed_as_lines_are_read_back_equal(here, tmp_path):
    write_lines(
        tmp_path / "a.jsonl",
        {
            "uri": "https://a.example/1.2/tea",
            "title": "Tee ☕ \u2028 \u202e",
            "tags": ["hot", "Ü"],
            "text": "# Tea\n\n```\n\u001b[1m  code\t\n```\r\n  \u0085end \U0001f375 \n\n",
            "document_type": "faq",
            "license": "MIT",
            "metadata": {"language": "de", "description": "Of tea.", "n": [1.5, None, {"é": True}]},
        },
        {"uri": "note:2", "text": "Milk.", "metadata": {"license": "my own", "version": "3"}},
    )
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "b.md").write_text("---\nowner: me\n---\n# Bread\n\nBaked for an hour.\n")
    assert here("new", "one", "--jsonl", "a.jsonl", "--files", "docs").code == 0
    (tmp_path / "b.jsonl").write_text(here("documents", "one", "--jsonl").out)
    assert here("new", "two", "--jsonl", "b.jsonl").code == 0
    with kbkit.open(tmp_path / "kb") as workspace:
        whole = "".join(json.dumps(one.to_dict()) + "\n" for one in workspace["two"].documents)
        (tmp_path / "c.jsonl").write_text(whole)
        assert here("new", "three", "--jsonl", "c.jsonl").code == 0
        one, two, three = (
            [replace(document, id="", fetched_at=None) for document in workspace[name].documents]
            for name in ("one", "two", "three")
        )
    assert len(one) == 3
    assert one[1].metadata["license"] == "MIT"
    assert one == two == three


def test_documents_and_chunks_are_written_to_files(here, ask, tmp_path):
    pytest.importorskip("pyarrow")
    for ending in ("jsonl", "parquet"):
        path = tmp_path / f"a.{ending}"
        assert ask("documents", "drinks", "--output", path).code == 0
        assert here("new", ending, f"--{ending}", path).code == 0
        found = here("documents", ending, "--jsonl").lines
        assert [line["uri"] for line in found] == [
            line["uri"] for line in ask("documents", "drinks", "--jsonl").lines
        ]
    assert ask("documents", "drinks", "--output", path).code == 1
    path = tmp_path / "c.jsonl"
    assert ask("chunks", "drinks", "--vectors", "-o", path).code == 0
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    chunks = ask("chunks", "drinks", "--jsonl").lines
    assert [row["id"] for row in rows] == [chunk["id"] for chunk in chunks]
    assert all(row["vector"] for row in rows)
    outcome = ask("chunks", "drinks")
    assert chunks[0]["id"] in outcome.out
    assert "--output" in ask("chunks", "drinks", "--vectors").err


def test_eval_prints_figures_and_fails_below_a_floor(ask, tmp_path):
    path = tmp_path / "q.tsv"
    path.write_text("how long does black tea steep\ttea.html\nwhere is milk kept\tmilk.html\n")
    figures = ask("eval", "drinks", "--questions", path, "--json").json
    assert (figures["queries"], figures["ndcg@10"], figures["recall@10"]) == (2, 1, 1)
    assert figures["intervals"]["ndcg@10"] == [1, 1]
    assert "ndcg@10" in ask("eval", "drinks", "--questions", path).out
    good = ("eval", "drinks", "--questions", path, "--fail-under", "0.9")
    assert ask(*good).code == 0
    path.write_text("how long does black tea steep\tcoffee.html\n")
    outcome = ask(*good, "--json")
    assert outcome.code == cli.EXIT_BELOW_FLOOR == 4
    assert outcome.json["ndcg@10"] == 0
    assert "below 0.9" in outcome.err
    assert (
        "--against 'words'" in ask("eval", "drinks", "--questions", path, "--against", "words").err
    )


def test_eval_of_a_recipe_asks_its_questions(here, tmp_path):
    (tmp_path / "tea.md").write_text("# Tea\n\nBlack tea steeps for four minutes.\n")
    text = "name: drinks\nsources:\n  - type: files\n    path: '*.md'\n"
    (tmp_path / "r.yaml").write_text(text)
    assert "has no golden questions" in here("eval", "r.yaml").err
    questions = "questions:\n  - question: how long [b]does[/b] tea steep\n    relevant: [tea.md]\n"
    (tmp_path / "r.yaml").write_text(text + questions)
    assert "kbkit build r.yaml" in here("eval", "r.yaml").err
    assert here("build", "r.yaml", "--no-site").code == 0
    floor = here("eval", "r.yaml", "--fail-under", "0.8", "--against", "dense", "--json")
    assert (floor.code, floor.json["against"]["label"]) == (0, "dense")
    shown = here("eval", "r.yaml", "--against", "dense", "--verbose").out
    assert "[b]does[/b]" in shown
    assert "difference" in shown


def test_eval_uses_ratings_or_qrels(here, tmp_path):
    with kbkit.open(tmp_path / "kb") as workspace:
        kb = workspace.create("notes")
        kb.add("Tea", "Black tea steeps for four minutes.")
        kb.rate(kb.search("tea")[0].chunk.id, 5, query="tea")
        kb.feedback.judgements().to_qrels(tmp_path / "notes.qrels")
    for more in ((), ("--judgements", "notes.qrels")):
        figures = here("eval", "notes", "--json", *more).json
        assert (figures["unit"], figures["queries"], figures["hit@1"]) == ("chunk", 1, 1)


def test_workspace_is_an_option_a_variable_or_the_local_folder(here, tmp_path, monkeypatch):
    here("new", "one")
    assert (tmp_path / "kb" / "catalog.db").is_file()
    monkeypatch.setenv("KBKIT_WORKSPACE", str(tmp_path / "by-variable"))
    here("new", "two")
    assert [kb["name"] for kb in here("list", "--json").json] == ["two"]
    here("new", "three", workspace="by-option")
    assert [kb["name"] for kb in here("list", "--json", workspace="by-option").json] == ["three"]
    monkeypatch.delenv("KBKIT_WORKSPACE")
    assert [kb["name"] for kb in here("list", "--json").json] == ["one"]


def test_empty_workspace_suggests_kbkit_new(here):
    assert "kbkit new" in here("list").err
    assert here("list", "--json").json == []
    outcome = here("search", "tea")
    assert (outcome.code, outcome.out) == (1, "")
    assert "kbkit new" in outcome.err


def test_delete_asks_first(here, monkeypatch):
    here("new", "notes")
    for answer, code in (("n\n", 1), ("", 1)):
        with tempfile.TemporaryFile("w+") as typed:
            typed.write(answer)
            typed.seek(0)
            monkeypatch.setattr(sys, "stdin", typed)
            assert here("delete", "notes").code == code
    assert here("list", "--json").json
    assert here("delete", "notes", "--yes").code == 0
    assert here("list", "--json").json == []


def test_workspace_of_a_newer_kbkit_is_refused(here, tmp_path):
    here("new", "notes")
    with sqlite3.connect(tmp_path / "kb" / "catalog.db") as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    outcome = here("list")
    assert outcome.code == 1
    assert "upgrade kbkit" in outcome.err


def test_second_build_changes_nothing(here, fruit):
    report = here("build", "recipe.yaml", "--no-site", "--json").json
    assert report.keys() >= REPORT_KEYS
    assert (report["new"], report["chunks_embedded"] > 0) == (1, True)
    assert report["evaluation"]["ndcg@10"] == 1
    assert report["site"] is None
    report = here("build", "recipe.yaml", "--no-site", "--json").json
    assert (report["new"], report["same"], report["chunks_embedded"]) == (0, 1, 0)
    outcome = here("build", "recipe.yaml", "--no-site")
    assert "1 same" in outcome.out
    assert "nDCG@10 1.000" in outcome.out


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("name: x\nsorces: []\n", "recipe.yaml:2: sorces: unknown key; did you mean 'sources'"),
        ("name: [\n", "recipe.yaml:2: not YAML"),
        ("", "recipe.yaml:1: "),
        (None, "recipe.yaml: No such file"),
        ("name: x\nsources: [{type: files, path: a}]\nquestions: none.tsv\n", "none.tsv: No such"),
    ],
)
def test_invalid_recipe_is_reported_with_file_and_line(here, tmp_path, text, says):
    if text is not None:
        (tmp_path / "recipe.yaml").write_text(text)
    outcome = here("build", "recipe.yaml")
    assert (outcome.code, outcome.out) == (1, "")
    assert says in outcome.err
    assert here("list", "--json").json == []


def test_export_without_html_writes_the_project_only(here, fruit, tmp_path):
    here("new", "fruit", "--files", "a.md")
    report = here("export", "fruit", "--no-build", "--json").json
    project = Path(report["folder"])
    assert project.is_dir()
    assert (project / "mkdocs.yml").is_file()
    assert not report["site"]
    assert not (project / "site").exists()
    outcome = here("export", "fruit", "--no-build", "--folder", "elsewhere")
    assert (tmp_path / "elsewhere" / "mkdocs.yml").is_file()
    assert "elsewhere" in outcome.err
    outcome = here("serve-site", "fruit")
    assert outcome.code == 1
    assert "export one first" in outcome.err


def test_export_includes_the_model_unless_disabled(here, fruit, tmp_path):
    for name, setting in (("fruit", ""), ("plain", "site: {model: false}")):
        recipe = f"name: {name}\nsources: [{{type: files, path: a.md}}]\n{setting}\n"
        (tmp_path / f"{name}.yaml").write_text(recipe)

    def has_model(recipe: str, *options: str) -> bool:
        here("export", f"{recipe}.yaml", "--folder", recipe, "--no-build", *options)
        assert len(list((tmp_path / recipe / "docs/search").glob("*/core.js"))) == 1
        return bool(list((tmp_path / recipe / "docs/search").glob("*/m.js")))

    assert has_model("fruit")
    assert not has_model("fruit", "--no-model")
    assert not has_model("plain")
    assert has_model("plain", "--model")
    assert not has_model("plain")


def test_export_of_pages_and_of_a_standalone_project(here, fruit, tmp_path):
    # this builds the knowledge base first
    assert here("export", "recipe.yaml", "--folder", "docs/fruit", "--pages-only").code == 0
    assert (tmp_path / "docs/fruit/documents.json").is_file()
    assert not (tmp_path / "docs/fruit/mkdocs.yml").exists()
    report = here("export", "fruit", "--standalone", "--folder", "out", "--json").json
    assert Path(report["site"], "index.html").is_file()
    assert f"kbkit[site]=={kbkit.__version__}" in (tmp_path / "out/requirements.txt").read_text()
    workflow = yaml.safe_load((tmp_path / "out/.github/workflows/site.yml").read_text())
    assert "mkdocs build --strict" in str(workflow["jobs"]["publish"]["steps"])
    (tmp_path / "out/README.md").write_text("mine")
    here("export", "fruit", "--standalone", "--folder", "out", "--no-build")
    assert (tmp_path / "out/README.md").read_text() == "mine"
    assert here("export", "fruit", "--pages-only").code == 2
    assert here("watch", "fruit", "--no-build", "--port", "0").code == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ["bogus"],
        ["new"],
        ["new", "a", "--nonsense"],
        ["new", "a", "--crawl"],
        ["new", "a", "--crawl", "http://x.org", "--limit", "many"],
        ["new", "a", "--base-url", "http://x.org/"],
        ["new", "a", "--files", "x", "--depth", "1"],
        ["new", "a", "--files", "x", "--no-sitemap"],
        ["new", "a", "--files", "x", "--provider", "trafilatura"],
        ["new", "a", "--jsonl", "x", "--delay", "1"],
        ["new", "a", "--jsonl", "x", "--limit", "1"],
        ["new", "a", "--files", "x", "--include", "y"],
        ["add", "a"],
        ["search"],
        ["search", "a", "--queries", "b"],
        ["search", "--queries", "b"],
        ["search", "a", "--limit", "0"],
        ["eval"],
        ["eval", "a", "--fail-under", "nan"],
        ["eval", "a", "--fail-under", "1.1"],
        ["eval", "a", "--questions", "b", "--judgements", "c"],
        ["tune"],
        ["tune", "a", "--questions", "b", "--judgements", "c"],
        ["serve-site", "a", "--port", "70000"],
        ["mcp", "--root", "nowhere"],
        ["--workspace"],
    ],
    ids=" ".join,
)
def test_wrong_usage_exits_with_2_and_creates_nothing(here, tmp_path, arguments):
    outcome = here(*arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert "Error: " in outcome.err
    assert not (tmp_path / "kb" / "catalog.db").exists() or here("list", "--json").json == []


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["new", "A b"], "'A b' cannot name a knowledge base"),
        (["new", "taken"], "'taken' exists"),
        (["show", "none"], "choose from taken"),
        (["export", "none"], "choose from taken"),
        (["search", "tea", "--kb", "none"], "choose from taken"),
        (["search", "  "], "the query is empty"),
        (["search", "tea", "--mode", "fuzzy"], "hybrid, dense, lexical"),
        (["search", "tea", "--type", "poem"], "must be 'manual'"),
        (["search", "tea", "--state", "lost"], "must be 'current'"),
        (["search", "tea", "--after", "yesterday"], "a date such as 2026-01-31"),
        (["search", "tea", "--min-rating", "7"], "less than or equal to 5"),
        (["search", "--queries", "none.txt", "--json"], "none.txt"),
        (["refresh", "taken"], "kbkit add taken"),
        (["eval", "taken", "--questions", "none.tsv"], "none.tsv: No such file"),
        (["eval", "taken", "--judgements", "none.qrels"], "none.qrels.topics.tsv: No such file"),
        (["eval", "taken"], "taken: there are no judgements; rate"),
        (["eval", "none.yaml"], "none.yaml: No such file"),
        (["new", "x", "--crawl", "ftp://x.org"], "http://"),
        (["new", "x", "--crawl", "http://x.org", "--limit", "0"], "limit: must be"),
        (["new", "x", "--mirror", "folder", "--base-url", "x.org"], "http://"),
        (["new", "x", "--package", "a b"], "name: 'a b' has characters that are not allowed here"),
        (["export", "taken", "--folder", "/proc/nothing"], "/proc/nothing"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_error_exits_with_1_and_one_message(here, arguments, says):
    here("new", "taken")
    outcome = here(*arguments)
    assert (outcome.code, outcome.out) == (1, "")
    assert says in outcome.err
    assert outcome.err.startswith("kbkit: ")
    assert outcome.err.count("\n") == 1
    assert "x" not in {kb["name"] for kb in here("list", "--json").json}


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (["--crawl", "http://127.0.0.1:{port}/"], "; --allow-private permits private networks"),
        (["--page", "http://[::1]:{port}/"], "; --allow-private permits private networks"),
        (["--crawl", "http://127.0.0.1:{port}/", "--allow-private"], "cannot connect"),
        (["--page", "http://no-such-host.invalid/"], "cannot resolve"),
        (["--files", "none/*.md"], "failed: none/*.md: no such file"),
        (["--files", "empty"], "skipped: empty: nothing to read"),
        (["--mirror", "empty", "--base-url", "http://x.org/"], "empty: "),
        (["--jsonl", "none.jsonl"], "failed: none.jsonl: "),
        (["--package", "no_such_package"], "no_such_package"),
        (["--mirror", "none", "--base-url", "http://x.org/"], "none"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_nothing_readable_exits_with_3_and_reasons(here, tmp_path, source, says):
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        port = server.server_port
    (tmp_path / "empty").mkdir()
    source = [part.format(port=port) for part in source]
    outcome = here("new", "notes", *source)
    assert outcome.code == cli.EXIT_NOTHING_READ == 3
    assert says in outcome.err
    assert "no knowledge bases" in here("list").err
    here("new", "notes")
    here("sources", "add", "notes", *source)
    outcome = here("refresh", "notes", "--json")
    assert outcome.code == 3
    report = outcome.json
    problems = report["failed"] + report["skipped"]
    assert problems
    for problem in problems:
        assert not problem["reason"].startswith(problem["uri"])
        assert f": {problem['uri']}: {problem['uri']}" not in outcome.err


def test_help_lists_commands(here):
    assert here("--version").out == f"kbkit {kbkit.__version__}\n"
    outcome = here("--help")
    assert outcome.code == 0
    section = outcome.out.partition("Commands:")[2]
    commands = re.findall(r"^  ([a-z][a-z-]*) ", section, re.MULTILINE)
    assert len(commands) > 15
    main = "new add list show documents search refresh delete build export eval tune"
    assert {*main.split(), "serve-site", "watch"} <= set(commands)
    for command in commands:
        outcome = here(command, "--help")
        assert outcome.code == 0
    shown = here("new", "--help").out
    assert "crawl 1,000, others 100,000" in " ".join(shown.split())


def test_quiet_prints_results_and_errors_verbose_every_step(here, tmp_path):
    (tmp_path / "a.md").write_text("# Plums\n\nPlums are blue.\n")
    outcome = here("--quiet", "new", "fruit", "--files", "a.md")
    assert (outcome.code, outcome.out, outcome.err) == (0, "", "")
    outcome = here("--quiet", "add", "fruit", "--files", "none.md")
    assert outcome.err.startswith("failed: none.md: ")
    assert here("-q", "search", "plums").out
    assert here("-q", "show", "none").err.startswith("kbkit: no knowledge base named 'none'")
    (tmp_path / "a.md").write_text("# Plums\n\nPlums are red.\n")
    steps = here("--verbose", "refresh", "fruit").err.splitlines()
    assert "crawl 1 a.md" in steps
    assert here("-v", "-q", "list").code == 2


def test_settings_are_shown_with_their_origin(here, tmp_path, monkeypatch):
    (tmp_path / ".git").mkdir()
    path = tmp_path / "kbkit.toml"
    path.write_text('timeout = 5\nworkspace = "data"\n')
    monkeypatch.setenv("KBKIT_RATER", "ann")
    monkeypatch.setenv("KBKIT_PANEL_TOKEN", "secret-of-mine")
    monkeypatch.setenv("KBKIT_TIMEOT", "9")
    outcome = here("config", "show", "--json")
    found = {each["name"]: (each["value"], each["origin"]) for each in outcome.json}
    assert found["timeout"] == ("5.0", str(path))
    assert found["rater"] == ("ann", "KBKIT_RATER")
    assert found["user_agent"][1] == "default"
    assert "secret" not in outcome.out
    assert "did you mean 'KBKIT_TIMEOUT'" in outcome.err
    assert ["workspace", str(tmp_path / "data"), str(path)] in [
        line.split() for line in here("config", "show").out.splitlines()
    ]
    here("new", "fruit")
    assert (tmp_path / "data" / "catalog.db").is_file()
    shown = here("--workspace", "other", "config", "show", "--json").json
    assert shown[0] == {"name": "workspace", "value": "other", "origin": "--workspace"}
    path.write_text("timeot = 5\n")
    assert "did you mean 'timeout'" in here("list").err


def test_piped_output_is_not_wrapped(here, tmp_path):
    name = f"{'a-long-name-' * 12}.html"
    (tmp_path / "pages").mkdir()
    page = PAGE.format(title="Tea", text="Black tea steeps for four minutes.", link="x.html")
    (tmp_path / "pages" / name).write_text(page)
    about = "What people drink in the afternoon, " * 5
    lines = here("fidelity", "pages").out.splitlines()
    assert lines[1].split()[0] == name
    here("new", "drinks", "--description", about)
    lines = here("list").out.splitlines()
    assert len(lines) == 2
    assert lines[1].endswith(about.strip())
    here("add", "drinks", "--files", "pages")
    found = here("search", "tea").out.splitlines()
    assert any(line.endswith(f"{name}#tea") for line in found)
    assert all(line == line.rstrip() for line in found)
