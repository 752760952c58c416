"""The graph for other programs, and on the command line."""

import json

import networkx as nx
import pytest
from typer.testing import CliRunner

import kbkit
from kbkit.cli import app
from kbkit.errors import ConfigError, WorkspaceError


@pytest.fixture
def filled(graph):
    graph.create("pool", type="term", description="Connections.\u0007")
    graph.create("queue <script>")
    graph.create("alone")
    graph.relate("pool", "uses", "queue <script>", weight=0.5, note="a & b")
    return graph


def test_networkx_graphml_json_and_frame_say_the_same(filled, tmp_path):
    whole = filled.to_networkx()
    ((source, target, name, data),) = whole.edges(keys=True, data=True)
    assert (whole.nodes[source]["name"], name, whole.nodes[target]["name"]) == (
        "pool",
        "uses",
        "queue <script>",
    )
    assert (data["weight"], data["note"]) == (0.5, "a & b")
    assert len(whole) == 3
    read = nx.read_graphml(filled.export(tmp_path / "deep" / "graph.graphml"))
    assert sorted(d["name"] for _, d in read.nodes(data=True)) == [
        "alone",
        "pool",
        "queue <script>",
    ]
    values = json.loads(json.dumps(filled.to_json()))
    assert [(edge["source"], edge["target"]) for edge in values["edges"]] == [(source, target)]
    frame = filled.to_frame()
    assert frame[["source", "relation", "target"]].values.tolist() == [
        ["pool", "uses", "queue <script>"]
    ]


def test_an_empty_graph_is_exported_too(graph, tmp_path):
    assert len(graph.to_networkx()) == 0
    assert graph.to_json() == {"nodes": [], "edges": []}
    assert graph.to_frame().empty
    assert graph.export(tmp_path / "g.graphml").exists()


def test_a_file_that_cannot_be_written_is_one_error(filled, tmp_path):
    for name in ("taken.graphml", "taken.json"):
        (tmp_path / name).mkdir()
        with pytest.raises(WorkspaceError, match="may write"):
            filled.export(tmp_path / name)
    with pytest.raises(ConfigError, match="ends with"):
        filled.export(tmp_path / "graph.csv")


def test_characters_that_xml_cannot_hold_end_no_export(graph, tmp_path):
    graph.create("bell \x07 rings \ufffe", type="term")
    graph.create("queue")
    graph.relate("bell \x07 rings \ufffe", "uses", "queue", note="a\x00b\x1b[31m")
    written = nx.read_graphml(graph.export(tmp_path / "g.graphml"))
    assert {data["name"] for _, data in written.nodes(data=True)} == {
        "bell \ufffd rings \ufffd",
        "queue",
    }
    ((*_, data),) = written.edges(data=True)
    assert data["note"] == "a\ufffdb\ufffd[31m"
    as_json = json.loads(graph.export(tmp_path / "g.json").read_bytes())
    assert as_json["edges"][0]["note"] == "a\x00b\x1b[31m"


def test_the_command_line_shows_and_changes_the_graph(tmp_path):
    folder = str(tmp_path / "kb")
    with kbkit.open(folder) as workspace:
        for name in ("random access memory", "RAM", "disk"):
            workspace.graph.create(name)

    def run(*words, code=0):
        result = CliRunner().invoke(app, ["--workspace", folder, "graph", *words])
        assert result.exit_code == code, result.output
        return result.stdout

    assert {each["name"] for each in json.loads(run("entities", "--json"))} == {
        "random access memory",
        "RAM",
        "disk",
    }
    assert (
        json.loads(run("relate", "RAM", "faster than", "disk", "--json"))["name"] == "faster_than"
    )
    assert "faster_than" in run("neighbors", "RAM")
    assert "disk" in run("show", "RAM")
    assert json.loads(run("show", "RAM", "--json"))["neighbors"][0]["name"] == "disk"
    assert [step["name"] for step in json.loads(run("path", "RAM", "disk", "--json"))] == [
        "RAM",
        "disk",
    ]
    assert json.loads(run("suggestions", "--json"))[0]["reason"] == "acronym"
    run("merge", "random access memory", "RAM")
    assert json.loads(run("show", "RAM", "--json"))["name"] == "random access memory"
    run("undo")
    assert json.loads(run("show", "RAM", "--json"))["name"] == "RAM"
    run("refuse", "random access memory", "RAM")
    assert json.loads(run("suggestions", "--json")) == []
    assert {gap["kind"] for gap in json.loads(run("gaps", "--json"))} == {"orphan"}
    run("export", str(tmp_path / "graph.json"))
    assert len(json.loads((tmp_path / "graph.json").read_text())["edges"]) == 1
    run("export", str(tmp_path / "graph.graphml"))
    run("export", str(tmp_path / "graph.txt"), code=1)
