"""Collections, the graph and the memory tool over stdio."""

import json
import os
import re

import anyio
import pytest

import kbkit
from kbkit.mcp.submissions import MAX_DOCUMENTS, LongWork
from tests.mcp.agents import agent_of, unmarked

CATS = "# Cats\n\nA cat sleeps `sixteen` hours a day, and hunts at dusk."


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A folder that the server may read, beside one that it may not."""
    place = tmp_path_factory.mktemp("shared")
    root, other = place / "root", place / "other"
    for each in (root / "docs", other):
        each.mkdir(parents=True)
    (root / "docs" / "a.md").write_text("# Alpha\n\nAlpha is the first letter.")
    (root / "docs" / "b.md").write_text("# Beta\n\nBeta is the second letter.")
    (other / "secret.md").write_text("# Secret\n\nThe password is swordfish.")
    (root / "out.md").symlink_to(other / "secret.md")
    (root / "docs" / "out.md").symlink_to(other / "secret.md")
    (root / "binary.md").write_bytes(bytes(range(256)) * 10)
    (root / "some.exe").write_bytes(b"MZ")
    with (root / "huge.md").open("wb") as stream:
        os.truncate(stream.fileno(), 60_000_000)
    return root


@pytest.fixture(scope="module")
def agent(tmp_path_factory, root):
    folder = tmp_path_factory.mktemp("collections") / "ws"
    with kbkit.open(folder) as workspace:
        manual = workspace.create("manual")
        for name, other in (("KeepAlive", "Timeout"), ("Timeout", "KeepAlive")):
            text = f"# {name}\n\n`{name}` is a directive. It depends on `{other}`."
            manual.add(name, text, source=f"https://manual.example/{name}")
    options = ["--tools", "all", "--allow-write", "--root", str(root)]
    with agent_of(folder, *options) as found:
        found.folder = folder
        yield found


@pytest.fixture
def pets(agent):
    """A collection with two documents."""
    documents = [CATS, {"title": "Dogs", "content": "A dog barks at night."}]
    pets = {"collection_name": "pets", "documents": documents, "description": "Of pets."}
    created = agent.values("create_kb_collection", **pets)
    assert (created["new"], created["chunks"], created["left_out"]) == (2, 2, [])
    yield "pets"
    agent.call("drop_kb_collection", collection_name="pets")


def names_of(agent):
    return [row["name"] for row in agent.values("list_knowledge_bases")["knowledge_bases"]]


def ids_of(agent, name):
    found = agent.values("describe_kb_collection", collection_name=name)
    return [document["id"] for document in found["documents"]]


def test_collection_is_created_filled_searched_and_dropped(agent, pets):
    best = agent.values("search_kb", query="how long do cats sleep", collection_name=pets)
    assert "sixteen" in best["results"][0]["text"]
    assert best["results"][0]["kb"] == pets
    described = agent.values("describe_kb_collection", collection_name=pets)
    assert described["documents_in_all"] == 2
    assert "Of pets." in described["description"]
    assert pets in names_of(agent)
    again = agent.values("add_kb_documents", collection_name=pets, documents=json.dumps([CATS]))
    assert (again["new"], again["same"]) == (0, 1)
    deleted = agent.values("delete_kb_documents", collection_name=pets, ids=["text:Dogs"])
    assert deleted["deleted"] == 1
    assert len(ids_of(agent, pets)) == 1
    assert agent.values("drop_kb_collection", collection_name=pets)["collection_name"] == pets
    with kbkit.open(agent.folder) as workspace:
        assert workspace.trash()[0].name == pets
    assert "no knowledge base" in agent.error("search_kb", query="x", collection_name=pets)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"collection_name": "manual"}, "exists; choose another name"),
        ({"collection_name": "Bad Name"}, "cannot name a knowledge base"),
        ({"collection_name": "../x"}, "cannot name a knowledge base"),
        ({"collection_name": "files"}, "files"),
        ({"collection_name": ""}, "is empty"),
        ({"collection_name": "x" * 300}, "collection_name"),
        ({"collection_name": "new", "documents": '["a", '}, "line 1 column"),
        ({"collection_name": "new", "documents": "[" * 5000 + '"a"'}, "no"),
        ({"collection_name": "new", "documents": [1]}, "documents[0]: is neither"),
        ({"collection_name": "new", "documents": 7}, "give a text, a list"),
        ({"collection_name": "new", "documents": ["x y", " "]}, "documents[1]: is empty"),
        ({"collection_name": "new", "documents": [{"titel": "x"}]}, "there are title, content"),
        ({"collection_name": "new", "documents": [{"title": "x"}]}, "content: is missing"),
        ({"collection_name": "new", "documents": [{"content": "x", "tags": "y"}]}, "[0].tags"),
        (
            {
                "collection_name": "new",
                "documents": [{"title": "a", "content": "x"}, {"title": "a", "content": "y"}],
            },
            "give each its own",
        ),
        ({"collection_name": "new", "documents": "https://a.example/b"}, "does not fetch"),
        ({"collection_name": "new", "documents": ["a b"] * 3 + ["/etc/passwd"]}, "--root"),
        ({"collection_name": "new", "collection": "x"}, "collection: is unknown"),
    ],
)
def test_invalid_collection_is_not_created(agent, arguments, message):
    assert message in agent.error("create_kb_collection", **arguments)
    assert "new" not in names_of(agent)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/etc/passwd", "--root"),
        ("../other/secret.md", "--root"),
        ("out.md", "--root"),
        ("docs/../../other", "--root"),
        ("~/x.md", "--root"),
        ("nothing.md", "--root"),
        ("binary.md", "binary"),
        ("some.exe", "are not read"),
        ("huge.md", "MB"),
    ],
)
def test_file_that_cannot_be_added_is_an_error(agent, path, message):
    error = agent.error("add_kb_documents", collection_name="manual", documents=path)
    assert message in error
    assert "swordfish" not in error
    assert len(ids_of(agent, "manual")) == 2


def test_allowed_folder_is_added_without_links_to_the_outside(agent, pets):
    added = agent.values("add_kb_documents", collection_name=pets, documents="docs")
    assert (added["new"], len(added["left_out"])) == (2, 1)
    assert "a link that leads out" in added["left_out"][0]
    assert {"root/docs/a.md", "root/docs/b.md"} < set(ids_of(agent, pets))
    found = agent.values("search_kb", query="password swordfish", collection_name=pets)
    assert "swordfish" not in json.dumps(found)
    more = "docs/a.md\ndocs/b.md"
    assert agent.values("add_kb_documents", collection_name=pets, documents=more)["same"] == 2


def test_control_characters_are_removed_from_documents(agent, pets):
    text = "# Null\0 signs\n\n雪 and \U0001f600 are signs."
    assert agent.values("add_kb_documents", collection_name=pets, documents=[text])["new"] == 1
    link = "[Snow](https://snow.example) falls in winter, and melts in spring."
    assert agent.values("add_kb_documents", collection_name=pets, documents=link)["new"] == 1


def test_documents_are_deleted_all_or_none(agent, pets):
    error = agent.error("delete_kb_documents", collection_name=pets, ids=["text:Dogs", "nope"])
    assert "nope" in error
    assert "text:Dogs" in ids_of(agent, pets)
    assert "ids" in agent.error("delete_kb_documents", collection_name=pets, ids=[])
    for tool in ("describe_kb_collection", "drop_kb_collection"):
        assert "nope" in agent.error(tool, collection_name="nope")
    agent.values("kb_write", path="plan.md", content="# A plan")
    assert "delete files" in agent.error("drop_kb_collection", collection_name="files")
    assert "files" in agent.error("add_kb_documents", collection_name="files", documents=CATS)


def test_knowledge_bases_of_people_are_not_collections(agent, pets, root):
    with kbkit.open(agent.folder) as workspace:
        workspace.create("letters").ingest(kbkit.FilesSource(path=str(root / "docs")))
    letters = {"collection_name": "letters"}
    before = ids_of(agent, "letters")
    for error in (
        agent.error("drop_kb_collection", **letters),
        agent.error("add_kb_documents", **letters, documents=CATS),
        agent.error("delete_kb_documents", **letters, ids=before[:1]),
    ):
        assert "is not a collection but a knowledge base of people" in error
        assert "`kbkit delete letters`" in error
    assert ids_of(agent, "letters") == before
    found = agent.values("search_kb", query="the first letter", limit=50)["results"]
    assert {result["kb"] for result in found} <= {"pets", "manual"}
    found = agent.values("search_knowledge_base", query="the first letter")["results"]
    assert found[0]["kb"] == "letters"


def test_too_many_documents_are_refused(agent, pets):
    documents = [f"Document number {number}." for number in range(MAX_DOCUMENTS + 1)]
    error = agent.error("add_kb_documents", collection_name=pets, documents=documents)
    assert "kbkit add" in error
    assert len(ids_of(agent, pets)) == 2


def test_documents_of_a_collection_are_listed_by_pages(agent, pets):
    documents = [f"# Fish {number}\n\nSwims." for number in range(60)]
    agent.values("add_kb_documents", collection_name=pets, documents=documents)
    pages = agent.pages("describe_kb_collection", collection_name=pets, max_tokens=1000)
    ids = [document["id"] for page in pages for document in page["documents"]]
    assert len(ids) == len(set(ids)) == 62


@pytest.mark.parametrize(("seconds", "steps"), [(0, [1, 2, 3, 4, 5]), (3600, [1, 5])])
def test_frequent_progress_is_reported_rarely(seconds, steps, monkeypatch):
    monkeypatch.setattr("kbkit.mcp.submissions._NOTIFY_SECONDS", seconds)
    reports = []

    class Request:
        async def report_progress(self, done, total, message):
            reports.append((done, total, message))

    def work():
        long = LongWork(Request())
        long.total = 5
        for _ in range(5):
            long.step("x" * 300)

    anyio.run(anyio.to_thread.run_sync, work)
    assert reports == [(step, 5, "x" * 200) for step in steps]


def test_graph_is_read_and_extended(agent):
    found = agent.values("graph_entities", query="keep")["entities"]
    assert "KeepAlive" in [row["name"] for row in found]
    relation = {"source": "KeepAlive", "relation": "tuned_with", "target": "Timeout"}
    assert agent.values("graph_relate", **relation, note="Seen.")["relation"] == "tuned_with"
    near = agent.values("graph_neighbors", entity="KeepAlive", relation="tuned_with")["neighbors"]
    assert [(row["name"], row["depth"]) for row in near] == [("Timeout", 1)]
    rows = agent.values("about", query="KeepAlive")["found"]
    assert {"subject", "document", "statement"} <= {row["kind"] for row in rows}
    assert "KeepAlive" in agent.error("graph_neighbors", entity="KeepAliv")
    assert "depth" in agent.error("graph_neighbors", entity="KeepAlive", depth=9)
    itself = {"source": "Timeout", "relation": "is", "target": "Timeout"}
    assert "itself" in agent.error("graph_relate", **itself)
    assert "limit" in agent.error("graph_entities", limit=0)
    assert "nothing-of-that-name" in agent.error("about", query="nothing-of-that-name")


def test_memory_follows_its_specification(agent):
    path = "/memories/tasks/a.md"
    agent.values("memory", command="create", path=path, file_text="one\ntwo\n")
    assert "already exists" in agent.error("memory", command="create", path=path, file_text="x")
    shown = agent.values("memory", command="view", path=path)
    assert "     2\ttwo" in shown["text"]
    assert re.match(r"<quote-\d{10}>Here's the content of", shown["text"])
    agent.values("memory", command="str_replace", path=path, old_str="two", new_str="three")
    agent.values("memory", command="insert", path=path, insert_line=0, insert_text="zero\n")
    agent.values("memory", command="rename", old_path=path, new_path="/memories/tasks/b.md")
    path = "/memories/tasks/b.md"
    ranged = agent.values("memory", command="view", path=path, view_range=[2, -1])["text"]
    assert "zero" not in ranged
    assert "three" in ranged
    assert "tasks/b.md" in agent.values("memory", command="view", path="/memories")["text"]
    assert "escape" in agent.error("memory", command="view", path="/memories/../../etc/passwd")
    assert "must start with" in agent.error("memory", command="view", path="/etc/passwd")
    assert "command" in agent.error("memory", command="format", path=path)
    far = {"insert_line": 99, "insert_text": "x"}
    assert "insert_line" in agent.error("memory", command="insert", path=path, **far)
    agent.values("memory", command="delete", path="/memories/tasks")
    assert "does not exist" in agent.error("memory", command="delete", path="/memories/tasks")


@pytest.mark.slow
def test_long_note_is_viewed_in_parts(agent):
    lines = [f"line {number} of the note" for number in range(900)]
    path = "/memories/long.md"
    agent.values("memory", command="create", path=path, file_text="\n".join(lines))
    parts = agent.pages("memory", command="view", path=path)
    text = "".join(unmarked(part["text"]) for part in parts)
    assert [line.partition("\t")[2] for line in text.splitlines()[1:]] == lines
