"""The graph for other programs."""

import json

import networkx as nx
import pytest

from kbkit.errors import ConfigError, WorkspaceError


@pytest.fixture
def filled(graph):
    graph.create("pool", type="term", description="Connections.\u0007")
    graph.create("queue <script>")
    graph.create("alone")
    graph.relate("pool", "uses", "queue <script>", weight=0.5, note="a & b")
    return graph


def test_networkx_graphml_json_and_frame_agree(filled, tmp_path):
    whole = filled.to_networkx()
    ((source, target, name, data),) = whole.edges(keys=True, data=True)
    row = ["pool", "uses", "queue <script>"]
    assert [whole.nodes[source]["name"], name, whole.nodes[target]["name"]] == row
    assert (data["weight"], data["note"]) == (0.5, "a & b")
    assert len(whole) == 3
    read = nx.read_graphml(filled.export(tmp_path / "deep" / "graph.graphml"))
    names = sorted(node["name"] for _, node in read.nodes(data=True))
    assert names == ["alone", "pool", "queue <script>"]
    values = json.loads(json.dumps(filled.to_json()))
    assert [(edge["source"], edge["target"]) for edge in values["edges"]] == [(source, target)]
    assert filled.to_frame()[["source", "relation", "target"]].values.tolist() == [row]


def test_empty_graph_is_exported(graph, tmp_path):
    assert len(graph.to_networkx()) == 0
    assert graph.to_json() == {"nodes": [], "edges": []}
    assert graph.to_frame().empty
    assert graph.export(tmp_path / "g.graphml").exists()


def test_unwritable_file_and_unknown_format_are_errors(filled, tmp_path):
    for name in ("taken.graphml", "taken.json"):
        (tmp_path / name).mkdir()
        with pytest.raises(WorkspaceError, match="may write"):
            filled.export(tmp_path / name)
    with pytest.raises(ConfigError, match="ends with"):
        filled.export(tmp_path / "graph.csv")


def test_characters_invalid_in_xml_are_replaced_in_graphml(graph, tmp_path):
    graph.create("bell \x07 rings \ufffe", type="term")
    graph.create("queue")
    graph.relate("bell \x07 rings \ufffe", "uses", "queue", note="a\x00b\x1b[31m")
    written = nx.read_graphml(graph.export(tmp_path / "g.graphml"))
    names = {data["name"] for _, data in written.nodes(data=True)}
    assert names == {"bell \ufffd rings \ufffd", "queue"}
    ((*_, data),) = written.edges(data=True)
    assert data["note"] == "a\ufffdb\ufffd[31m"
    as_json = json.loads(graph.export(tmp_path / "g.json").read_bytes())
    assert as_json["edges"][0]["note"] == "a\x00b\x1b[31m"
