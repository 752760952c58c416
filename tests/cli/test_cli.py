"""The command line that scripts rely on."""

import json
import re
import sqlite3
import sys
import tempfile
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import typer
import yaml

import kbkit
from kbkit import cli
from kbkit.cli.app import load_commands
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
HIT_KEYS = {
    "score",
    "kb",
    "document_id",
    "uri",
    "title",
    "heading_path",
    "anchor",
    "chunk_id",
    "text",
    "start",
    "end",
}
REPORT_KEYS = {"new", "changed", "same", "gone", "failed", "skipped", "chunks_embedded", "seconds"}


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)

    @property
    def lines(self):
        return [json.loads(line) for line in self.out.splitlines()]


@pytest.fixture
def run(monkeypatch, capsys):
    """Runs the command line in this process, as the installed script does."""

    def call(*arguments, workspace=None):
        before = [] if workspace is None else ["--workspace", str(workspace)]
        monkeypatch.setattr(sys, "argv", ["kbkit", *before, *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as caught:
            cli.main()
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        return Outcome(caught.value.code, captured.out, captured.err)

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
def made(tmp_path_factory):
    """A workspace with two knowledge bases, for commands that change nothing."""
    folder = tmp_path_factory.mktemp("made") / "kb"
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


def write_lines(path, *documents):
    path.write_text("".join(json.dumps(document) + "\n" for document in documents))
    return path


def uris(run, name):
    return sorted(line["uri"] for line in run("documents", name, "--jsonl").lines)


# --- sources ----------------------------------------------------------------------------------


def test_an_option_of_kbkit_after_the_command_is_explained(here):
    result = here("search", "tea", "--workspace", "kb")
    assert result.code == 2
    assert "before the command: kbkit --workspace ... search" in result.err


def test_a_site_is_crawled(here, site):
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


def test_depth_and_labels_shape_what_a_crawl_reads(here, site):
    command = ("new", "a", "--crawl", site, "--allow-private", "--depth", "1", "--no-sitemap")
    said = ("--type", "policy", "--tag", "house", "--license", "cc by 4.0", "--attribution", "© Us")
    assert here(*command, *said).code == 0
    assert sorted(uri.removeprefix(site) for uri in uris(here, "a")) == ["", "guide/tea.html"]
    for document in here("documents", "a", "--jsonl").lines:
        assert (document["document_type"], document["tags"]) == ("policy", ["house"])
        assert (document["license"], document["attribution"]) == ("CC-BY-4.0", "© Us")


def test_options_reach_only_sources_that_have_them(here, site, tmp_path):
    (tmp_path / "a.md").write_text("# A\n\nWords.\n")
    crawl = ("--crawl", site, "--allow-private", "--depth", "0", "--delay", "0.01", "--no-sitemap")
    assert here("new", "a", *crawl, "--files", "a.md", "--concurrency", "1").code == 0
    assert len(uris(here, "a")) == 2
    assert "firecrawl" in here("new", "b", "--page", site, "--provider", "nobody").err


def test_one_page_is_read(here, site):
    url = site + "guide/tea.html"
    assert here("new", "tea", "--page", url, "--allow-private").code == 0
    assert uris(here, "tea") == [url]


def test_a_mirror_stands_for_an_address(here, pages):
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
    outcome = here(
        "new",
        "all",
        "--files",
        "docs/*.md",
        "--jsonl",
        "notes.jsonl",
        "--package",
        "json",
        "--limit",
        "2",
        "--description",
        "Ünïcode",
    )
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


def test_add_reads_more_into_what_is_there(here, tmp_path):
    lines = write_lines(tmp_path / "a.jsonl", {"uri": "a", "title": "A", "text": "Apples."})
    assert "kbkit add" in here("new", "notes").err
    report = here("add", "notes", "--jsonl", lines, "--json").json
    assert (report["new"], report["same"]) == (1, 0)
    report = here("add", "notes", "--jsonl", lines, "--json").json
    assert (report["new"], report["same"], report["chunks_embedded"]) == (0, 1, 0)


def test_new_with_json_prints_json_without_sources_too(here):
    assert here("new", "notes", "--json").json["new"] == 0


def test_refresh_tells_what_changed(here, tmp_path):
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


def test_lines_that_are_wrong_are_told_and_the_others_read(here, tmp_path):
    path = write_lines(tmp_path / "a.jsonl", {"uri": "a", "title": "A", "text": "Apples."}, [])
    outcome = here("new", "notes", "--jsonl", path)
    assert outcome.code == 0
    assert "1 new" in outcome.err
    assert "line 2" in outcome.err


# --- answers ----------------------------------------------------------------------------------


def test_search_prints_hits_with_all_promised_keys(run, made):
    hits = run("search", "how long does black tea steep", "--json", workspace=made).json
    assert hits[0].keys() >= HIT_KEYS
    assert hits[0]["kb"] == "drinks"
    assert hits[0]["heading_path"] == ["Tea", "Black tea"]
    assert hits[0]["anchor"] == "black"
    assert "four minutes" in hits[0]["text"]
    assert hits[0]["end"] - hits[0]["start"] == len(hits[0]["text"])
    scores = [hit["score"] for hit in hits]
    assert scores == sorted(scores, reverse=True)


def test_search_is_narrowed_by_knowledge_base_and_limit(run, made):
    found = run("search", "bread tea milk", "--kb", "food", "--json", workspace=made).json
    assert {hit["kb"] for hit in found} == {"food"}
    both = ("--kb", "food", "--kb", "drinks")
    found = run("search", "bread tea milk", *both, "--json", workspace=made).json
    assert {hit["kb"] for hit in found} == {"food", "drinks"}
    found = run("search", "bread tea milk", "--limit", "1", "--json", workspace=made).json
    assert len(found) == 1


def test_context_is_printed_for_agents_within_its_budget(run, made, monkeypatch):
    outcome = run("context", "how long does black tea steep", "--limit", "2", workspace=made)
    assert outcome.code == 0
    assert outcome.out.startswith("2 passages, best first. Text in <quote-")
    assert "source: http://x.org/tea.html#black\n" in outcome.out
    found = run("context", "black tea", "--max-tokens", "200", "--json", workspace=made).json
    assert found["tokens"] <= found["max_tokens"] == 200
    assert found["pieces"][0]["citation"]["heading_path"] == ["Tea", "Black tea"]
    narrow = run("context", "tea", "--kb", "food", "--json", workspace=made).json
    assert {piece["citation"]["kb"] for piece in narrow["pieces"]} <= {"food"}
    monkeypatch.setenv("KBKIT_TOP_K", "1")
    assert len(run("context", "tea", "--json", workspace=made).json["pieces"]) == 1
    for few, says in (("20", "100 or more"), ("100", "too few for a passage with its source")):
        outcome = run("context", "tea", "--max-tokens", few, workspace=made)
        assert (outcome.code, outcome.out) == (1, "")
        assert says in outcome.err


@pytest.mark.parametrize("mode", ["hybrid", "dense", "lexical"])
def test_every_mode_answers(run, made, mode):
    found = run("search", "black tea", "--mode", mode, "--json", workspace=made).json
    assert found[0]["title"] == "Tea"


@pytest.mark.parametrize(
    ("options", "titles"),
    [
        (["--tag", "hot"], {"Tea"}),
        (["--tag", "hot", "--tag", "cold"], set()),
        (["--type", "faq", "--type", "other"], {"Tea", "Milk", "Bread"}),
        (["--type", "faq"], set()),
        (["--source", "http://x.org/"], {"Tea", "Milk"}),
        (["--path", "*.html"], {"Tea", "Milk"}),
        (["--path", "tea*"], {"Tea"}),
        (["--after", "2020-01-31"], {"Tea", "Milk", "Bread"}),
        (["--before", "2020-01-31T12:00:00+01:00"], set()),
        (["--min-rating", "4"], {"Milk"}),
        (["--state", "current"], {"Tea", "Milk", "Bread"}),
        (["--state", "stale"], set()),
        (["--source", "http://x.org/", "--min-rating", "5", "--kb", "food"], set()),
    ],
)
def test_search_is_narrowed_by_filters(run, made, options, titles):
    found = run("search", "bread tea milk", *options, "--json", workspace=made).json
    assert {hit["title"] for hit in found} == titles


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--type", "poem"], "choose from manual"),
        (["--state", "lost"], "choose from current"),
        (["--after", "yesterday"], "2026-01-31"),
        (["--min-rating", "7"], "from 1 to 5"),
    ],
)
def test_a_wrong_filter_is_one_clear_error(run, made, options, says):
    outcome = run("search", "tea", *options, workspace=made)
    assert outcome.code == 1
    assert says in outcome.err


def test_queries_are_filtered_too(run, made, tmp_path):
    path = tmp_path / "queries.txt"
    path.write_text("tea\nmilk\n")
    found = run("search", "--queries", path, "--tag", "hot", "--json", workspace=made).lines
    assert [{hit["title"] for hit in hits} for hits in found] == [{"Tea"}, {"Tea"}]


def test_search_says_what_was_done_instead(here, tmp_path):
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


def test_text_of_others_does_not_steer_the_terminal(run, tmp_path):
    page = tmp_path / "a.md"
    page.write_text(
        "# T\x1b[31mitle\n\nText \x1b[2J\x1b]0;owned\x07 \u202eof kettles \x9b1m.", "utf-8"
    )
    run("new", "k", "--files", str(page))
    outcome = run("search", "kettles")
    assert "of kettles" in outcome.out
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", outcome.out)
    outcome = run("context", "kettles")
    assert "of kettles" in outcome.out
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", outcome.out)


def test_search_for_people_names_title_place_and_address(run, made):
    outcome = run("search", "black tea", workspace=made)
    assert outcome.code == 0
    assert re.search(r"1\. Tea  drinks\n.*\n    Black tea  \d", outcome.out)
    assert "http://x.org/tea.html#black" in outcome.out
    assert "passages of 3 documents in" in outcome.err


def test_a_document_is_printed_once_with_its_passages(here, tmp_path):
    (tmp_path / "a.md").write_text("# Tea\n\nTea is hot.\n\n## Milk\n\nTea with milk.\n")
    here("new", "drinks", "--files", "a.md")
    printed = here("search", "tea").out
    assert printed.count("Tea  drinks") == printed.count("a.md") == 1
    assert printed.count("Tea is hot.") == 1, "the description repeats a passage"
    assert "Tea with milk." in printed


def test_text_of_documents_is_not_taken_for_markup(run, made):
    assert "[b]ø 🍞[/b]" in run("search", "bread", workspace=made).out


def test_queries_give_one_list_a_line(run, made, tmp_path):
    path = tmp_path / "queries.txt"
    path.write_text("\ufeffblack tea\n\nbread\u2028baked\r\ncold milk", encoding="utf-8")
    outcome = run("search", "--queries", path, "--limit", "2", "--json", workspace=made)
    found = outcome.lines
    assert [hits[0]["title"] if hits else None for hits in found] == ["Tea", None, "Bread", "Milk"]
    assert all(len(hits) <= 2 for hits in found)
    path.write_text("")
    assert run("search", "--queries", path, "--json", workspace=made).out == ""


def test_list_and_show_tell_the_figures(run, made):
    drinks, food = run("list", "--json", workspace=made).json
    assert (drinks["name"], food["name"]) == ("drinks", "food")
    shown = run("show", "drinks", "--json", workspace=made).json
    assert shown == drinks
    assert (shown["documents"], shown["description"]) == (2, "All about drinks")
    assert shown["chunks"] >= 2
    assert shown["embedder"].startswith("static:")
    assert shown["states"] == {"current": 2, "stale": 0, "gone": 0}
    assert shown["created_at"] <= shown["updated_at"]
    assert "drinks" in run("list", workspace=made).out
    assert "All about drinks" in run("show", "drinks", workspace=made).out


def test_documents_are_listed_whole_or_by_line(run, made):
    found = run("documents", "drinks", "--jsonl", workspace=made).lines
    keys = {
        "id",
        "uri",
        "title",
        "description",
        "document_type",
        "tags",
        "state",
        "metadata",
        "content",
    }
    assert all(line.keys() == keys for line in found)
    assert found[1]["content"].startswith("# Tea")
    assert found[1]["tags"] == ["hot"]
    head, *plain = run("documents", "drinks", workspace=made).out.splitlines()
    assert head.split() == ["type", "state", "title", "URI"]
    assert [line.split()[-2:] for line in plain] == [[x["title"], x["uri"]] for x in found]
    listed = run("documents", "drinks", "--json", workspace=made).json
    assert listed == [
        {k: v for k, v in x.items() if k not in ("metadata", "content")} for x in found
    ]


def commands():
    """Yield the words and the object of each command and group."""
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


def test_a_bad_value_of_an_option_is_refused_in_plain_words(run):
    checked = 0
    for path, command in commands():
        for option in command.params:
            if option.param_type_name == "option" and option.metavar == "NUMBER":
                low, high = option.min, option.max
                ends = [*([low - 1] if low is not None else []), *([high + 1] if high else [])]
                for value in ("nope", *ends):
                    words = ["1" for each in command.params if each.required]
                    refused = run(*path, *words, f"{option.opts[0]}={value}")
                    assert refused.code == 2
                    assert re.search(
                        r"'--[a-z-]+': give (a (whole )?number|[-\d.]+ or (more|less))\b",
                        refused.err,
                    ), (path, refused.err)
                    checked += 1
    assert checked > 60


def test_every_listing_has_json_that_is_one_value(run, made):
    found = {
        path: command
        for path, command in commands()
        if (command.help or "").startswith("List ") and not hasattr(command, "commands")
    }
    assert {("list",), ("documents",), ("models", "list"), ("sources", "list")} <= set(found)
    values = {"name": "drinks", "target": "http://x.org/milk.html"}
    for path, command in found.items():
        needed = [each.name for each in command.params if each.required]
        assert set(needed) <= set(values), path
        given = [values[name] for name in needed]
        outcome = run(*path, *given, "--json", workspace=made)
        assert (outcome.code, type(outcome.json)) == (0, list), path


def test_documents_that_are_printed_as_lines_come_back_equal(here, tmp_path):
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
            [replace(found, id="", fetched_at=None) for found in workspace[name].documents]
            for name in ("one", "two", "three")
        )
    assert len(one) == 3
    assert one[1].metadata["license"] == "MIT"
    assert one == two == three


def test_documents_and_chunks_go_into_files(here, run, made, tmp_path):
    pytest.importorskip("pyarrow")
    for ending in ("jsonl", "parquet"):
        path = tmp_path / f"a.{ending}"
        assert run("documents", "drinks", "--output", path, workspace=made).code == 0
        assert here("new", ending, f"--{ending}", path).code == 0
        found = here("documents", ending, "--jsonl").lines
        assert [line["uri"] for line in found] == [
            line["uri"] for line in run("documents", "drinks", "--jsonl", workspace=made).lines
        ]
    assert run("documents", "drinks", "--output", path, workspace=made).code == 1
    said = run("chunks", "drinks", "--vectors", "-o", tmp_path / "c.jsonl", workspace=made)
    assert said.code == 0
    rows = [json.loads(line) for line in (tmp_path / "c.jsonl").read_text().splitlines()]
    told = run("chunks", "drinks", "--jsonl", workspace=made).lines
    assert [row["id"] for row in rows] == [line["id"] for line in told]
    assert all(row["vector"] for row in rows)
    assert (
        told[0]["id"]
        in run("chunks", "drinks", workspace=made).err + run("chunks", "drinks", workspace=made).out
    )
    assert "--output" in run("chunks", "drinks", "--vectors", workspace=made).err


def test_queries_of_a_file_print_json_lines(run, made, tmp_path):
    path = tmp_path / "queries.txt"
    path.write_text("black tea\n\nmilk\n")
    said = run("search", "--queries", path, "--jsonl", workspace=made)
    assert [bool(line) for line in said.lines] == [True, False, True]
    # as it was called before
    again = run("search", "--queries", path, "--json", workspace=made)
    assert [[hit["chunk_id"] for hit in line] for line in again.lines] == [
        [hit["chunk_id"] for hit in line] for line in said.lines
    ]
    (one,) = run("search", "milk", "--jsonl", workspace=made).lines
    assert one[0]["title"] == "Milk"
    assert "--jsonl" in run("search", "--queries", path, workspace=made).err


def test_eval_prints_figures_and_holds_a_floor(run, made, tmp_path):
    path = tmp_path / "q.tsv"
    path.write_text("how long does black tea steep\ttea.html\nwhere is milk kept\tmilk.html\n")
    figures = run("eval", "drinks", "--questions", path, "--json", workspace=made).json
    assert (figures["queries"], figures["ndcg@10"], figures["recall@10"]) == (2, 1, 1)
    assert figures["intervals"]["ndcg@10"] == [1, 1]
    assert "nDCG@10" in run("eval", "drinks", "--questions", path, workspace=made).out
    good = ("eval", "drinks", "--questions", path, "--fail-under", "0.9")
    assert run(*good, workspace=made).code == 0
    path.write_text("how long does black tea steep\tcoffee.html\n")
    outcome = run(*good, "--json", workspace=made)
    assert outcome.code == cli.EXIT_BELOW_FLOOR == 4
    assert outcome.json["ndcg@10"] == 0
    assert "below 0.9" in outcome.err


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
    assert (floor.code, floor.json["against"]["configuration"]) == (0, "dense")
    shown = here("eval", "r.yaml", "--against", "dense", "--verbose").out
    assert "[b]does[/b]" in shown
    assert "difference" in shown


def test_eval_of_a_knowledge_base_goes_by_its_ratings_or_by_qrels(here, tmp_path):
    with kbkit.open(tmp_path / "kb") as workspace:
        kb = workspace.create("notes")
        kb.add("Tea", "Black tea steeps for four minutes.")
        kb.rate(kb.search("tea")[0].chunk.id, 5, query="tea")
        kb.feedback.judgements().to_qrels(tmp_path / "notes.qrels")
    for more in ((), ("--judgements", "notes.qrels")):
        figures = here("eval", "notes", "--json", *more).json
        assert (figures["unit"], figures["queries"], figures["hit@1"]) == ("chunk", 1, 1)


# --- workspaces -------------------------------------------------------------------------------


def test_the_workspace_is_an_option_a_variable_or_a_folder_here(here, tmp_path, monkeypatch):
    here("new", "one")
    assert (tmp_path / "kb" / "catalog.db").is_file()
    monkeypatch.setenv("KBKIT_WORKSPACE", str(tmp_path / "by-variable"))
    here("new", "two")
    assert [kb["name"] for kb in here("list", "--json").json] == ["two"]
    here("new", "three", workspace="by-option")
    assert [kb["name"] for kb in here("list", "--json", workspace="by-option").json] == ["three"]
    monkeypatch.delenv("KBKIT_WORKSPACE")
    assert [kb["name"] for kb in here("list", "--json").json] == ["one"]


def test_an_empty_workspace_says_what_to_do(here):
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


def test_a_workspace_of_a_newer_kbkit_is_refused(here, tmp_path):
    here("new", "notes")
    with sqlite3.connect(tmp_path / "kb" / "catalog.db") as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    outcome = here("list")
    assert outcome.code == 1
    assert "upgrade kbkit" in outcome.err


# --- build, export, serve -----------------------------------------------------------------------


def test_build_reports_and_does_nothing_the_second_time(here, tmp_path):
    (tmp_path / "a.md").write_text("# Apples\n\nApples are red.\n")
    (tmp_path / "recipe.yaml").write_text(
        "name: fruit\nsources: [{type: files, path: '*.md'}]\n"
        "questions: [{question: what colour are apples, relevant: [a.md]}]\n"
    )
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
def test_a_bad_recipe_is_named_with_file_and_line(here, tmp_path, text, says):
    if text is not None:
        (tmp_path / "recipe.yaml").write_text(text)
    outcome = here("build", "recipe.yaml")
    assert (outcome.code, outcome.out) == (1, "")
    assert says in outcome.err
    assert here("list", "--json").json == []  # nothing was begun


def test_export_without_html_writes_the_project_only(here, tmp_path):
    (tmp_path / "a.md").write_text("# Apples\n\nApples are red.\n")
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


def test_browsers_get_the_model_unless_somebody_says_no(here, tmp_path):
    (tmp_path / "a.md").write_text("# Apples\n\nApples are red.\n")
    for name, says in (("fruit", ""), ("plain", "site: {model: false}")):
        recipe = f"name: {name}\nsources: [{{type: files, path: a.md}}]\n{says}\n"
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


def test_export_of_pages_and_of_a_project_for_others(here, tmp_path):
    (tmp_path / "a.md").write_text("# Apples\n\nApples are red.\n")
    (tmp_path / "recipe.yaml").write_text("name: fruit\nsources: [{type: files, path: '*.md'}]\n")
    outcome = here(
        "export", "recipe.yaml", "--folder", "docs/fruit", "--pages-only"
    )  # builds it first
    assert outcome.code == 0
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


# --- wrong usage and bad input ------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        ["bogus"],
        ["new"],
        ["new", "a", "--nonsense"],
        ["new", "a", "--crawl"],
        ["new", "a", "--crawl", "http://x.org", "--limit", "0"],
        ["new", "a", "--crawl", "http://x.org", "--limit", "many"],
        ["new", "a", "--base-url", "http://x.org/"],
        ["new", "a", "--files", "x", "--depth", "1"],
        ["new", "a", "--files", "x", "--no-sitemap"],
        ["new", "a", "--files", "x", "--provider", "trafilatura"],
        ["new", "a", "--jsonl", "x", "--delay", "1"],
        ["new", "a", "--crawl", "http://x.org", "--depth", "-1"],
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
        ["--workspace"],
    ],
    ids=" ".join,
)
def test_wrong_usage_is_2_and_makes_nothing(here, tmp_path, arguments):
    outcome = here(*arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert "Error: " in outcome.err
    assert not (tmp_path / "kb" / "catalog.db").exists() or here("list", "--json").json == []


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["new", "A b"], "'A b' cannot name a knowledge base"),
        (["new", "../x"], "cannot name a knowledge base"),
        (["new", "taken"], "'taken' exists"),
        (["show", "none"], "choose from taken"),
        (["documents", "none"], "choose from taken"),
        (["refresh", "none"], "choose from taken"),
        (["add", "none", "--files", "*.md"], "choose from taken"),
        (["delete", "none", "--yes"], "choose from taken"),
        (["export", "none"], "choose from taken"),
        (["serve-site", "none"], "choose from taken"),
        (["search", "tea", "--kb", "none"], "choose from taken"),
        (["search", "  "], "the query is empty"),
        (["search", "tea", "--mode", "fuzzy"], "hybrid, dense, lexical"),
        (["search", "--queries", "none.txt", "--json"], "none.txt"),
        (["refresh", "taken"], "kbkit add taken"),
        (["eval", "taken", "--questions", "none.tsv"], "none.tsv: No such file"),
        (["eval", "taken", "--judgements", "none.qrels"], "none.qrels.topics.tsv: No such file"),
        (["eval", "taken"], "taken: there are no judgements; rate"),
        (["eval", "none"], "choose from taken"),
        (["eval", "none.yaml"], "none.yaml: No such file"),
        (["new", "x", "--crawl", "ftp://x.org"], "http://"),
        (["new", "x", "--mirror", "folder", "--base-url", "x.org"], "http://"),
        (["new", "x", "--package", "a b"], "name: 'a b' has characters that are not allowed here"),
        (["export", "taken", "--folder", "/proc/nothing"], "/proc/nothing"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_an_error_is_1_and_one_message(here, arguments, says):
    here("new", "taken")
    outcome = here(*arguments)
    assert (outcome.code, outcome.out) == (1, "")
    assert says in outcome.err
    assert outcome.err.startswith("kbkit: ")
    assert outcome.err.count("\n") == 1
    assert "x" not in {kb["name"] for kb in here("list", "--json").json}


def closed_port():
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        return server.server_port


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (["--crawl", "http://127.0.0.1:{port}/"], "; --allow-private permits private networks"),
        (["--page", "http://[::1]:{port}/"], "; --allow-private permits private networks"),
        (["--crawl", "http://127.0.0.1:{port}/", "--allow-private"], "cannot connect"),
        (["--page", "http://no-such-host.invalid/"], "cannot resolve"),
        (["--files", "none/*.md"], "failed: none/*.md: no such file"),
        (["--files", "empty"], "skipped: empty: there is nothing to read"),
        (["--mirror", "empty", "--base-url", "http://x.org/"], "empty: "),
        (["--jsonl", "none.jsonl"], "failed: none.jsonl: "),
        (["--package", "no_such_package"], "no_such_package"),
        (["--mirror", "none", "--base-url", "http://x.org/"], "none"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_nothing_readable_is_3_and_says_why(here, tmp_path, source, says):
    port = closed_port()
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


def test_help_names_values_by_what_they_are(here):
    outcome = here("--help")
    section = outcome.out.partition("Commands:")[2]
    commands = re.findall(r"^  ([a-z][a-z-]*) ", section, re.MULTILINE)
    assert len(commands) > 15
    for command in commands:
        shown = here(command, "--help").out
        assert not re.search(r"<\w|\[str\]|int range", shown), shown
    shown = here("new", "--help").out
    assert "--crawl URL" in shown
    assert "crawl 1,000, others 100,000" in " ".join(shown.split())
    assert "--kb TEXT" in here("search", "--help").out


def test_quiet_says_results_and_errors_and_verbose_every_step(here, tmp_path):
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


def test_settings_are_shown_with_where_they_come_from(here, tmp_path, monkeypatch):
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
    assert ["workspace", str(tmp_path / "data"), str(path), "Folder"] in [
        line.split()[:4] for line in here("config", "show").out.splitlines()
    ]
    here("new", "fruit")
    assert (tmp_path / "data" / "catalog.db").is_file()
    shown = here("--workspace", "other", "config", "show", "--json").json
    assert shown[0] == {
        "name": "workspace",
        "value": "other",
        "origin": "--workspace",
        "meaning": "Folder of the workspace",
    }
    path.write_text("timeot = 5\n")
    assert "did you mean 'timeout'" in here("list").err


def test_nothing_is_wrapped_where_a_program_reads(here, tmp_path):
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


def test_version_and_help(here):
    assert here("--version").out == f"kbkit {kbkit.__version__}\n"
    outcome = here("--help")
    assert outcome.code == 0
    for command in (
        "new",
        "add",
        "list",
        "show",
        "documents",
        "search",
        "refresh",
        "delete",
        "build",
        "export",
        "eval",
        "tune",
        "serve-site",
        "watch",
    ):
        assert f"  {command} " in outcome.out
        assert here(command, "--help").code == 0
