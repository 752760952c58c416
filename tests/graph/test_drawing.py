"""The drawn part of a graph: the most important nodes, or a neighbourhood."""

import pytest


def names(layout):
    return {node.name for node in layout.nodes}


@pytest.fixture
def workspace(workspace):
    for number in range(30):
        workspace.graph.create(f"part {number}", type="component")
        if number:
            workspace.graph.relate(f"part {number // 3}", "contains", f"part {number}")
    return workspace


def test_nodes_with_most_relations_are_first_and_largest(workspace):
    layout = workspace.graph.layout()
    assert {"part 0", "part 29"} <= names(layout)
    radii = [node.radius for node in layout.nodes]
    assert radii == sorted(radii, reverse=True)
    assert layout.total == len(layout.nodes)
    few = workspace.graph.layout(limit=4, type="component")
    assert len(few.nodes) == 4
    assert few.total >= 30
    assert "part 29" not in names(few), "it has one relation only"
    for edge in layout.edges:
        assert 0 <= edge.source < len(layout.nodes)
        assert 0 <= edge.target < len(layout.nodes)
        assert edge.source != edge.target


def test_neighbourhood_of_nodes(workspace):
    near = workspace.graph.layout("part 4", depth=1)
    assert names(near) == {"part 4", "part 1", "part 12", "part 13", "part 14"}
    assert {edge.name for edge in near.edges} == {"contains"}
    assert len(workspace.graph.layout(["part 4", "part 9"], depth=5, limit=7).nodes) == 7
    alone = workspace.graph.create("alone")
    assert names(workspace.graph.layout(alone)) == {"alone"}
    assert workspace.graph.layout("part 4", relation="handles").edges == ()


def test_layout_is_cached_until_the_graph_changes(workspace):
    graph = workspace.graph
    before = graph.layout("part 4", depth=1)
    assert graph.layout("part 4", depth=1) is before
    graph.delete("part 13")
    assert names(graph.layout("part 4", depth=1)) == names(before) - {"part 13"}
    graph.undo()
    assert graph.layout("part 4", depth=1) == before


def test_merge_moves_no_other_nodes(workspace):
    graph = workspace.graph
    before = {node.name: (node.x, node.y) for node in graph.layout().nodes}
    graph.merge("part 4", "part 29", by="ann")
    graph.relate("part 0", "contains", graph.create("a new part"))
    after = {node.name: (node.x, node.y) for node in graph.layout().nodes}
    assert set(after) == set(before) - {"part 29"} | {"a new part"}
    assert all(after[name] == place for name, place in before.items() if name != "part 29")


def test_layout_of_one_knowledge_base_has_its_names_and_documents(workspace):
    for name, parts in (("pools", ("pool", "size")), ("caches", ("cache", "age"))):
        kb = workspace.create(name)
        whole, part = f"{parts[0]}.Maker", f"{parts[0]}.Maker.{parts[1]}"
        text = f"# {name}\n\n## `class {whole}`\n\nMakes.\n\n## `{part}()`\n\nSets it.\n"
        kb.add(name, text, source=f"http://x.org/{name}.html")
    pools = workspace.graph.layout(kbs=["pools"])
    drawn = {name.partition("(")[0] for name in names(pools)}
    assert {"pool.Maker", "pool.Maker.size"} <= drawn
    assert not {"cache.Maker", "cache.Maker.age"} & drawn
    documents = workspace.graph.layout(kbs=["pools"], type=["document", "symbol"])
    assert "pools" in names(documents)
    assert "caches" not in names(documents)
