"""``kbkit graph`` on the command line, as text and JSON."""

import shutil

import pytest

import kbkit

PAGE = """# shelf.Pool {#shelf.Pool}

`shelf.Pool` keeps connections open. `shelf.Pool` raises `shelf.PoolError`.
"""


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    folder = tmp_path_factory.mktemp("commands") / "kb"
    with kbkit.open(folder) as workspace:
        workspace.create("manual").add("pool", PAGE, source="http://x.org/pool")
    return folder


@pytest.fixture
def folder(filled, tmp_path):
    """A workspace of each test's own."""
    return shutil.copytree(filled, tmp_path / "kb")


@pytest.fixture
def run(folder, run_kbkit):
    """Runs ``kbkit graph``, and returns its output."""

    def call(*arguments, code=0):
        outcome = run_kbkit("--workspace", folder, "graph", *arguments)
        assert outcome.code == code, outcome.err
        if code:
            return outcome.err
        return outcome.json if "--json" in arguments else outcome.out + outcome.err

    return call


def test_entities_are_created_updated_and_deleted(run):
    properties = ("--property", 'size={"most": 5}', "--property", "unit=two words")
    entity = run("create", "pool", "--type", "term", "--alias", "conn pool", *properties, "--json")
    assert entity["properties"] == {"size": {"most": 5}, "unit": "two words"}
    assert (entity["type"], entity["aliases"]) == ("term", ["conn pool"])
    changed = run("update", "conn pool", "--description", "Kept open.", "--name", "Pool", "--json")
    assert (changed["id"], changed["name"]) == (entity["id"], "Pool")
    assert run("entities", "poo", "--type", "term", "--json") == [changed]
    assert "Kept open." in run("entities", "poo")
    assert run("delete", "pool", "--json")["name"] == "Pool"
    assert "no entity" in run("neighbors", "conn pool", code=1)
    edits = [each["what"] for each in run("edits", "--json")]
    assert edits == ["deleted 'Pool'", "changed 'pool'", "created 'pool'"]
    assert run("undo", "--json")["what"] == "deleted 'Pool'"
    assert run("neighbors", "conn pool", "--json") == []


@pytest.mark.parametrize(
    ("named", "kind"),
    [
        ("http://x.org/pool", "document"),
        ("file:notes/pools.md", "file"),
        ("entry:fix-pools", "entry"),
        ("shelf.Pool", "entity"),
    ],
)
def test_relations_are_created_listed_and_deleted(run, folder, named, kind):
    with kbkit.open(folder) as workspace:
        workspace.entries.create("Fix pools")
    run("create", "insight")
    options = ("--weight", 0.5, "--note", "why", "--json")
    relation = run("relate", named, "explains", "insight", *options)
    assert relation["source"]["kind"] == kind
    assert run("relations", "insight", "--json") == [relation]
    assert run("relations", named, "--name", "explains", "--json") == [relation]
    assert "why" in run("relations", "insight")
    (step,) = run("neighbors", "insight", "--json")
    assert step["target"] == relation["source"]
    assert "explains" in run("neighbors", "insight")
    assert len(run("path", named, "insight", "--json")) == 2
    assert run("unrelate", named, "explains", "insight", "--json") == relation
    assert "no relation 'explains'" in run("unrelate", named, "explains", "insight", code=1)
    assert "undone: deleted the relation" in run("undo")
    assert run("relations", "insight", "--json") == [relation]


def test_merges_are_suggested_refused_made_and_undone(run):
    run("create", "Remote Procedure Call")
    run("create", "RPC")
    (pair,) = run("suggestions", "--json")
    assert pair["reason"] == "acronym"
    assert run("refuse", *pair["names"], "--json") == {"refused": pair["names"]}
    assert run("suggestions", "--json") == []
    number = run("edits", "--json")[0]["id"]
    assert "refused to merge" in run("undo", number)
    assert run("merge", *pair["names"], "--json")["aliases"] == [pair["names"][1]]
    assert "undone: merged" in run("undo")
    assert run("suggestions", "--json") == [pair]


def test_gaps_are_listed(run):
    run("create", "lonely")
    assert [each["name"] for each in run("gaps", "--kind", "orphan", "--json")] == ["lonely"]


def test_graph_is_exported(run, tmp_path):
    run("relate", "shelf.Pool", "faster than", "shelf.PoolError")
    for name in ("g.json", "g.graphml"):
        assert run("export", tmp_path / name, "--json") == {"file": str(tmp_path / name)}
        assert "faster_than" in (tmp_path / name).read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["create", "a", "--property", "b"], "NAME=VALUE"),
        (["delete", "nothing"], "no entity"),
        (["relate", "file:", "uses", "file:a"], "no entity"),
        (["undo"], "nothing"),
        (["undo", "0"], "edit"),
        (["export", "graph.txt"], ".graphml"),
    ],
)
def test_wrong_arguments_are_errors_and_change_nothing(run, arguments, message):
    assert message in run(*arguments, code=1)
    assert run("edits", "--json") == []
