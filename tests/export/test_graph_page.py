"""The page of a knowledge base's graph."""

import json
import re

import pytest
import yaml

import kbkit
from kbkit.errors import ExportError
from kbkit.export import build_site, graph_facts, publisher
from kbkit.export.mkdocs.build import theme
from kbkit.recipes import KnowledgeBaseSpec, NameSpec, RulesAnnotation
from tests.export.conftest import graph_script, times_of

EVIL = "<img src=x onerror=alert(1)>"
PAGES = {
    "open": """# Opening pools

## open_pool {#open_pool}

Opens a pool of connections. `open_pool` raises `PoolError` when `max_size` is below one.

## PoolError {#PoolError}

What `open_pool` raises. See `max_size` too.
""",
    "close": """# Closing pools

## close_pool {#close_pool}

Closes what `open_pool` gave. `close_pool` calls `drain_pool` and raises `PoolError`.

## Sizes

Set `max_size` before `open_pool`; then `drain_pool` and `close_pool` are quick.
""",
    "drain": f"""# Draining

Call `drain_pool` before `close_pool`; `open_pool` again afterwards. {EVIL} is no `PoolError`.

## Twice

`drain_pool` raises `PoolError`, `close_pool` does not, with any `max_size`, says {EVIL}.
""",
}


def fill(workspace, name="pools"):
    names = (NameSpec(name=EVIL), NameSpec(name="open_pool"), NameSpec(name="drain_pool"))
    spec = KnowledgeBaseSpec(annotation=RulesAnnotation(names=names))
    kb = workspace.create(name, spec=spec)
    for path, text in PAGES.items():
        kb.add(text.partition("\n")[0][2:], text, source=f"https://pools.example/{path}.html")
    kb.annotations.make()
    return kb


@pytest.fixture
def workspace(tmp_path):
    with kbkit.open(tmp_path / "kb") as workspace:
        yield workspace


def data(folder):
    return json.loads((folder / "graph.json").read_text(encoding="utf-8"))


def names(folder):
    return [row[0] for row in data(folder)["nodes"]]


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "pages"


def test_graph_of_a_knowledge_base_is_written(workspace, folder):
    fill(workspace).export(folder=folder, pages_only=True)
    found = data(folder)
    assert {"open_pool", "PoolError", "close_pool"} <= set(names(folder))
    assert found["total"] >= len(found["nodes"]) > 3
    assert found["edges"]
    assert {"raises", "defined_in"} & set(found["relations"]) == {"raises"}, "between entities"
    numbers = range(len(found["nodes"]))
    assert all(edge[0] in numbers and edge[1] in numbers for edge in found["edges"])
    by_name = {row[0]: row for row in found["nodes"]}
    *_, chunks, documents, places, description, aliases, properties = by_name["open_pool"]
    assert (chunks >= 4, documents) == (True, 3)
    number, anchor, defines = places[0]
    assert (anchor, defines) == ("open_pool", 1)
    assert found["documents"][number][1].endswith("/open.md")
    assert description.startswith("Opens a pool of connections.")
    assert (aliases, properties) == ([], [])
    page = (folder / "graph.md").read_text()
    assert re.search(r"- \[open\\_pool\]\(pages/\S+/open\.md#open_pool\) \(\w+\): Opens", page)
    assert "[knowledge graph](graph.md)" in (folder / "index.md").read_text()


@pytest.mark.slow
def test_undrawn_nodes_are_in_another_script(workspace, tmp_path, monkeypatch):
    kb = fill(workspace)
    kb.export(folder=tmp_path / "all", pages_only=True)
    whole = data(tmp_path / "all")
    assert whole["pictured"] == len(whole["nodes"])
    monkeypatch.setattr(graph_facts, "MAX_DRAWN", 2)
    report = kb.export(folder=tmp_path / "site")
    found = data(tmp_path / "site/docs")
    assert (found["pictured"], found["total"]) == (2, whole["total"])
    script, main = graph_script(report.site)
    assert (len(main["nodes"]), main["further"]) == (2, True), "the page stays light"
    text = (script.with_suffix("") / "further.js").read_text()
    further = json.loads(re.fullmatch(r"kbkitFurther\((.*)\);\n", text)[1])
    nodes = [*main["nodes"], *further["nodes"]]
    assert {row[0] for row in nodes} == {row[0] for row in whole["nodes"]}

    def triples(nodes, edges):
        return {(nodes[e[0]][0], main["relations"][e[2]], nodes[e[1]][0]) for e in edges}

    edges = triples(nodes, [*main["edges"], *further["edges"]])
    assert edges == {
        (whole["nodes"][e[0]][0], whole["relations"][e[2]], whole["nodes"][e[1]][0])
        for e in whole["edges"]
    }


@pytest.mark.slow
def test_unchanged_graph_is_not_written_and_changes_are(workspace, folder):
    kb = fill(workspace)
    kb.export(folder=folder, pages_only=True)
    before = times_of(folder, "graph.*")
    assert kb.export(folder=folder, pages_only=True).written == 0
    assert times_of(folder, "graph.*") == before
    (folder / "graph.md").write_text("edited")
    kb.export(folder=folder, pages_only=True)
    assert "Most related" in (folder / "graph.md").read_text()
    old = (folder / "graph.json").read_text().replace('"format":3', '"format":2')
    (folder / "graph.json").write_text(old)
    kb.export(folder=folder, pages_only=True)
    assert data(folder)["format"] == 3
    workspace.graph.relate("drain_pool", "warned_of_by", "PoolError", note="a note of mine")
    kb.export(folder=folder, pages_only=True)
    assert "warned_of_by" in data(folder)["relations"]
    assert "a note of mine" not in (folder / "graph.json").read_text()
    kb.add("More", "`close_pool` extends `drain_pool`. See `open_pool`.")
    kb.export(folder=folder, pages_only=True)
    assert "extends" in data(folder)["relations"]


def test_unchanged_graph_is_not_computed_again(workspace, folder, monkeypatch):
    kb = fill(workspace)
    kb.export(folder=folder, pages_only=True)
    calls = []
    look = publisher.look_at_graph
    monkeypatch.setattr(publisher, "look_at_graph", lambda *of: calls.append(of) or look(*of))
    kb.export(folder=folder, pages_only=True)
    assert calls == []
    workspace.graph.update("open_pool", description="It opens the pool.")
    kb.export(folder=folder, pages_only=True)
    assert len(calls) == 1
    assert "It opens the pool." in (folder / "graph.json").read_text()


def test_graph_page_can_be_turned_off(workspace, tmp_path, folder):
    kb = fill(workspace)
    kb.export(folder=folder, pages_only=True)
    assert (folder / "graph.json").exists()
    kb.export(folder=folder, pages_only=True, graph=False)
    assert not (folder / "graph.json").exists()
    assert not (folder / "graph.md").exists()
    assert "graph" not in (folder / "index.md").read_text()
    spec = KnowledgeBaseSpec.model_validate({"site": {"graph": False}})
    assert not spec.site.graph
    plain = workspace.create("plain", spec=KnowledgeBaseSpec(annotation="none"))
    plain.add("Tea", "## Kettle\n\n`water` boils.")
    plain.export(folder=tmp_path / "plain", pages_only=True)
    assert not (tmp_path / "plain/graph.md").exists()
    assert not (tmp_path / "plain/graph.json").exists()


def test_graph_page_leaks_no_other_knowledge_base_or_query(workspace, folder):
    kb = fill(workspace)
    secret = workspace.create("secret")
    text = (
        "## open_pool {#open_pool}\n\nThe hidden pool of Project Falcon.\n\n"
        "## falcon_pool {#falcon_pool}\n\n`falcon_pool` raises `PoolError` in `open_pool`.\n"
    )
    for n in range(4):
        secret.add(f"Falcon {n}", text.replace("hidden", f"hidden {n}"))
    secret.annotations.make()
    graph = workspace.graph
    graph.create("falcon wing", type="term")
    graph.relate("falcon wing", "part_of", "falcon_pool")
    graph.relate("falcon wing", "hides_in", "open_pool")
    graph.update("drain_pool", aliases=["falcon drain"])
    kb.rate(next(iter(kb.chunks)).id, 1, query="why does open_pool fly like a falcon?", rater="ann")
    kb.export(folder=folder, pages_only=True)
    assert "open_pool" in names(folder)
    for path in folder.rglob("*"):
        if path.is_file():
            assert "falcon" not in path.read_text(errors="replace").lower(), path


def test_graph_page_contains_no_local_paths(workspace, tmp_path, folder):
    private = tmp_path / "private-place"
    private.mkdir()
    for path, text in PAGES.items():
        (private / f"{path}.md").write_text(text)
    kb = workspace.create("local")
    kb.ingest(kbkit.FilesSource(path=str(private)))
    kb.annotations.make()
    kb.export(folder=folder, pages_only=True)
    written = (folder / "graph.json").read_text() + (folder / "graph.md").read_text()
    assert "open_pool" in written
    assert str(tmp_path) not in written
    assert "file:" not in written


def test_hostile_names_are_escaped(workspace, tmp_path):
    kb = fill(workspace)
    workspace.graph.relate(EVIL, "stings", "open_pool")
    report = kb.export(folder=tmp_path / "site")
    assert EVIL in names(tmp_path / "site/docs")
    page = (report.site / "graph.html").read_text()
    assert "<img src=x" not in page
    assert "&lt;img src=x onerror=alert(1)&gt;" in page
    assert "<script>alert" not in page


@pytest.mark.soak
def test_damaged_graph_data_is_an_error(workspace, tmp_path):
    kb = fill(workspace)
    kb.export(folder=tmp_path / "site", build=False)
    for damaged in ("{", "[]", '{"documents": 3}', '{"documents": [["a"]]}'):
        (tmp_path / "site/docs/graph.json").write_text(damaged)
        with pytest.raises(ExportError, match=r"graph\.json: damaged"):
            build_site(tmp_path / "site")


def test_foreign_graph_page_is_an_error(workspace, folder):
    kb = fill(workspace)
    folder.mkdir()
    (folder / "graph.md").write_text("mine")
    with pytest.raises(ExportError, match=r"graph\.md: not written by kbkit"):
        kb.export(folder=folder, pages_only=True)
    kb.export(folder=folder, pages_only=True, graph=False)
    assert (folder / "graph.md").read_text() == "mine"


@pytest.mark.slow
@pytest.mark.parametrize("directories", [pytest.param(False, marks=pytest.mark.soak), True])
def test_graph_links_to_pages_of_a_mounted_site(workspace, tmp_path, directories):
    project = tmp_path / "site"
    (project / "docs").mkdir(parents=True)
    config = {"site_name": "Mine", "theme": theme(), "plugins": ["search", "kbkit"]}
    config["use_directory_urls"] = directories
    (project / "mkdocs.yml").write_text(yaml.safe_dump(config))
    (project / "docs/index.md").write_text("# Mine\n")
    fill(workspace).export(folder=project / "docs/kb/pools", pages_only=True)
    site = build_site(project)
    assert not (site / "kb/pools/graph.json").exists()
    script, values = graph_script(site)
    assert len(values["documents"]) == 3
    for _, address in values["documents"]:
        assert address.startswith("kb/pools/pages/")
        assert (site / address / "index.html" if directories else site / address).is_file()
    page = site / ("kb/pools/graph/index.html" if directories else "kb/pools/graph.html")
    text = page.read_text()
    assert 'data-kb="kb/pools"' in text
    for address in re.findall(r'<script src="([^"]*graph[^"]*)" defer>', text):
        assert (page.parent / address).resolve().is_file(), address
    assert f"graphs/{script.name}" in text
    assert not re.findall(r"<script>[^<]*kbkitGraph", text), "nothing runs within the page"
