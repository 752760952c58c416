"""What of a graph is drawn: the most important part, or what is near something."""

from __future__ import annotations

import pytest

from kbkit.errors import ConfigError, NotFoundError


def named(layout):
    return {node.name for node in layout.nodes}


@pytest.fixture
def workspace(workspace):
    for number in range(30):
        workspace.graph.create(f"part {number}", type="component")
        if number:
            workspace.graph.relate(f"part {number // 3}", "contains", f"part {number}")
    return workspace


def test_what_most_is_related_to_comes_first_and_is_largest(workspace):
    layout = workspace.graph.layout()
    assert {"part 0", "part 29"} <= named(layout)
    radii = [node.radius for node in layout.nodes]
    assert radii == sorted(radii, reverse=True)
    assert layout.total == len(layout.nodes)
    few = workspace.graph.layout(limit=4, type="component")
    assert len(few.nodes) == 4
    assert few.total >= 30
    assert "part 29" not in named(few), "it has one relation only"
    for edge in layout.edges:
        assert 0 <= edge.source < len(layout.nodes)
        assert 0 <= edge.target < len(layout.nodes)
        assert edge.source != edge.target


def test_the_neighbourhood_of_something(workspace):
    near = workspace.graph.layout("part 4", depth=1)
    assert named(near) == {"part 4", "part 1", "part 12", "part 13", "part 14"}
    assert {edge.name for edge in near.edges} == {"contains"}
    assert len(workspace.graph.layout(["part 4", "part 9"], depth=5, limit=7).nodes) == 7
    alone = workspace.graph.create("alone")
    assert named(workspace.graph.layout(alone)) == {"alone"}
    assert workspace.graph.layout("part 4", relation="handles").edges == ()


def test_a_change_is_drawn_and_what_did_not_change_is_not_made_anew(workspace):
    graph = workspace.graph
    before = graph.layout("part 4", depth=1)
    assert graph.layout("part 4", depth=1) is before
    graph.delete("part 13")
    assert named(graph.layout("part 4", depth=1)) == named(before) - {"part 13"}
    graph.undo()
    assert graph.layout("part 4", depth=1) == before


def test_a_merge_moves_nothing_but_what_is_merged(workspace):
    graph = workspace.graph
    before = {node.name: (node.x, node.y) for node in graph.layout().nodes}
    graph.merge("part 4", "part 29", by="ann")
    graph.relate("part 0", "contains", graph.create("a new part"))
    after = {node.name: (node.x, node.y) for node in graph.layout().nodes}
    assert set(after) == set(before) - {"part 29"} | {"a new part"}
    assert {name: after[name] for name in before if name in after} == {
        name: place for name, place in before.items() if name != "part 29"
    }


def test_bad_arguments_are_refused(workspace):
    with pytest.raises(ConfigError, match="limit"):
        workspace.graph.layout(limit=2_001)
    with pytest.raises(ConfigError, match="depth"):
        workspace.graph.layout(depth=0)
    with pytest.raises(NotFoundError, match="nothing of that name"):
        workspace.graph.layout("nothing of that name")


def test_one_knowledge_base_is_drawn_by_what_its_passages_support(workspace):
    for name, parts in (("pools", ("pool", "size")), ("caches", ("cache", "age"))):
        kb = workspace.create(name)
        whole, part = f"{parts[0]}.Maker", f"{parts[0]}.Maker.{parts[1]}"
        text = f"# {name}\n\n## `class {whole}`\n\nMakes.\n\n## `{part}()`\n\nSets it.\n"
        kb.add(name, text, source=f"http://x.org/{name}.html")
    pools = workspace.graph.layout(kbs=["pools"])
    found = {name.partition("(")[0] for name in named(pools)}
    assert {"pool.Maker", "pool.Maker.size"} <= found
    assert not {"cache.Maker", "cache.Maker.age"} & found
    documents = workspace.graph.layout(kbs=["pools"], type=["document", "symbol"])
    assert "pools" in named(documents)
    assert "caches" not in named(documents)
