"""``kbkit graph``: all that Python does, from the command line, for people and as JSON."""

import json
import shutil
import sys

import pytest

import kbkit
from kbkit import cli

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
def run(folder, monkeypatch, capsys):
    """Runs ``kbkit graph`` as the installed script does; what it printed, out of JSON if asked."""

    def call(*arguments, code=0):
        monkeypatch.setattr(
            sys, "argv", ["kbkit", "--workspace", str(folder), "graph", *map(str, arguments)]
        )
        capsys.readouterr()
        with pytest.raises(SystemExit) as caught:
            cli.main()
        captured = capsys.readouterr()
        assert caught.value.code == code, captured.err
        assert "Traceback" not in captured.err
        if code:
            return captured.err
        return json.loads(captured.out) if "--json" in arguments else captured.out + captured.err

    return call


def test_entities_are_made_changed_and_deleted(run):
    made = run(
        "create",
        "pool",
        "--type",
        "term",
        "--alias",
        "conn pool",
        "--property",
        'size={"most": 5}',
        "--property",
        "unit=two words",
        "--json",
    )
    assert made["properties"] == {"size": {"most": 5}, "unit": "two words"}
    assert (made["type"], made["aliases"]) == ("term", ["conn pool"])
    changed = run("update", "conn pool", "--description", "Kept open.", "--name", "Pool", "--json")
    assert (changed["id"], changed["name"], changed["description"]) == (
        made["id"],
        "Pool",
        "Kept open.",
    )
    assert run("show", "pool", "--json")["type"] == "term"
    assert "Kept open." in run("show", "pool")
    assert [each["name"] for each in run("entities", "poo", "--type", "term", "--json")] == ["Pool"]
    assert run("delete", "pool", "--json")["name"] == "Pool"
    assert "no entity" in run("show", "conn pool", code=1)
    assert [each["what"] for each in run("edits", "--json")] == [
        "deleted 'Pool'",
        "changed 'pool'",
        "made 'pool'",
    ]
    assert run("undo", "--json")["what"] == "deleted 'Pool'"
    assert run("show", "conn pool", "--json")["name"] == "Pool"


@pytest.mark.parametrize("target", ["chunk", "document", "uri", "file", "entry", "entity"])
def test_anything_is_related_to_anything_listed_and_deleted(run, folder, target):
    with kbkit.open(folder) as workspace:
        (document,), (chunk,) = workspace["manual"].documents, workspace["manual"].chunks
        workspace.entries.create("Fix pools")
    run("create", "insight")
    named = {
        "chunk": chunk.id,
        "document": document.id,
        "uri": "http://x.org/pool",
        "file": "file:notes/pools.md",
        "entry": "entry:fix-pools",
        "entity": "shelf.Pool",
    }[target]
    made = run("relate", named, "explains", "insight", "--weight", 0.5, "--note", "why", "--json")
    kind = "document" if target == "uri" else target
    assert made["source"]["kind"] == kind
    assert made["source"]["id"] in (named.partition(":")[2], named, document.id) or kind == "entity"
    assert (
        run("relations", "insight", "--json")
        == run("relations", named, "--name", "explains", "--json")
        == [made]
    )
    assert "why" in run("relations", "insight")
    (step,) = run("neighbors", "insight", "--json")
    assert step["target"] == made["source"]
    assert len(run("path", named, "insight", "--json")) == 2
    assert run("unrelate", named, "explains", "insight", "--json") == made
    assert run("relations", "insight", "--json") == []
    assert "no relation 'explains'" in run("unrelate", named, "explains", "insight", code=1)
    assert "undone: deleted the relation" in run("undo")
    assert run("relations", "insight", "--json") == [made]


def test_merges_are_decided_and_taken_back(run):
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


def test_gaps_and_files(run, tmp_path):
    run("create", "lonely")
    assert [each["name"] for each in run("gaps", "--kind", "orphan", "--json")] == ["lonely"]
    assert run("export", tmp_path / "g.json", "--json") == {"file": str(tmp_path / "g.json")}
    assert json.loads((tmp_path / "g.json").read_text())["nodes"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["create", ""], "name"),
        (["create", "a", "--property", "b"], "NAME=VALUE"),
        (["update", "nothing"], "no entity"),
        (["delete", "nothing"], "no entity"),
        (["relate", "nothing", "uses", "file:a"], "no entity"),
        (["relate", "file:", "uses", "file:a"], "no entity"),
        (["relate", "file:a", "uses", "file:a"], "itself"),
        (["relate", "file:a", "uses", "file:b", "--weight", "2"], "weight"),
        (["undo"], "nothing"),
        (["undo", "7"], "no edit 7"),
        (["undo", "0"], "edit"),
        (["merge", "a", "b"], "no entity"),
        (["export", "graph.txt"], ".graphml"),
    ],
)
def test_mistakes_are_told_and_change_nothing(run, arguments, said):
    assert said in run(*arguments, code=1)
    assert run("edits", "--json") == []
