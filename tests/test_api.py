"""Names, arguments and errors of the public API."""

import inspect
import json

import pytest

import kbkit
from kbkit.errors import ArgumentError, ConfigError, NotFoundError
from kbkit.models import SourceDocument, Target, TargetKind
from kbkit.recipes import FilesSource, JsonlSource
from kbkit.testing import DocumentsReader

NAMES = {
    "KnowledgeBase": """
        add annotations as_retriever as_tool ask chunks configure context documents export
        feedback id improve info ingest name path plot rate ratings refresh related search similar
        sources spec sync
    """,
    "Workspace": """
        about as_retriever ask bundle close compact context create delete describe doctor entries
        files graph list path rebuild rename restore runs search subjects to_frame trash undelete
    """,
    "documents": "add delete expand folders list part undelete tags to_frame trash unexpand update",
    "annotations": "chunks statement_types make of subjects to_frame",
    "chunks": "embedding_map fit_query_encoder list of to_frame",
    "ratings": "add delete list of to_frame total",
    "sources": "add disable enable paths remove to_frame update",
    "feedback": "agreement evaluate judgements judging pool tune",
    "graph": """
        create delete edits entities entity export gaps layout merge neighbors passages path
        refuse relate relation relations suggestions to_frame to_json to_networkx undo update
    """,
    "plot": "chunks documents map ratings",
    "entries": """
        context create delete export_skills find import_skills learn learning_prompt list open
        path rate read rename revision sync trash undelete update
    """,
    "files": """
        append backlinks delete info insert links list memory_tool mkdir move open path prompt
        read replace revision roots sync trash tree undelete view write
    """,
}


def drinks(workspace):
    kb = workspace.create("drinks")
    kb.add("Tea", "# Tea\n\n## Green\n\nSteep two minutes.\n", source="http://x.org/tea.html")
    return kb


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    with kbkit.open(tmp_path_factory.mktemp("api") / "kb") as workspace:
        drinks(workspace)
        yield workspace


@pytest.fixture(scope="module")
def shared(workspace):
    """A knowledge base that no test changes."""
    return workspace["drinks"]


@pytest.fixture
def kb(tmp_path):
    with kbkit.open(tmp_path / "kb") as workspace:
        yield drinks(workspace)


def member(workspace, name):
    if name == "Workspace":
        return workspace
    if name in ("graph", "entries", "files"):
        return getattr(workspace, name)
    kb = workspace["drinks"]
    return kb if name == "KnowledgeBase" else getattr(kb, name)


@pytest.mark.parametrize("name", NAMES)
def test_public_names_are_pinned_and_documented(workspace, name):
    found = member(workspace, name)
    public = {each for each in dir(found) if not each.startswith("_")}
    assert public == set(NAMES[name].split())
    assert len(public) <= 28
    for each in public:
        attribute = inspect.getattr_static(type(found), each, None)
        assert inspect.getdoc(attribute if attribute is not None else getattr(found, each))
    assert inspect.getdoc(type(found))


WRONG = {"question", "depth_limit", "top_k", "settings", "directory", "config", "html", "license_"}
TWO = "add rate path merge refuse undo write append move view open"
POSITIONAL = dict.fromkeys(TWO.split(), 2) | {"relate": 3, "relation": 3, "replace": 3, "insert": 3}
"""Most arguments of a method that may be given without a name, where not one."""


@pytest.mark.parametrize("name", NAMES)
def test_only_main_arguments_are_positional(workspace, name):
    for each in NAMES[name].split():
        method = getattr(member(workspace, name), each)
        if not inspect.ismethod(method):
            continue
        parameters = inspect.signature(method).parameters
        positional = [one for one in parameters.values() if one.kind is one.POSITIONAL_OR_KEYWORD]
        assert len(positional) <= POSITIONAL.get(each, 1), (name, each)
        assert not WRONG.intersection(parameters)


@pytest.mark.parametrize("method", ["search", "ask"])
def test_positional_limit_names_the_correct_call(workspace, shared, method):
    for found in (shared, workspace):
        with pytest.raises(ArgumentError, match="only query may be given without a name") as error:
            getattr(found, method)("tea", 5)
        assert isinstance(error.value, ConfigError | TypeError)
    with pytest.raises(ArgumentError, match=r"write search\(query, limit=5\)"):
        shared.search("tea", 5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda kb: kb.search("tea", setings=None), "no argument 'setings'"),
        (lambda kb: kb.search("tea", limits=3), "did you mean 'limit'?"),
        (lambda kb: kb.search(), "give query"),
        (lambda kb: kb.search("tea", query="tea"), "query is given twice"),
        (lambda kb: kb.as_retriever(5), r"as_retriever\(limit=5\)"),
        (lambda kb: kb.export("out"), "folder='out'"),
        (lambda kb: kb.rate("x"), "give score"),
        (lambda kb: kb.documents.tags(1), "has 1 values"),
        (lambda kb: kb.feedback.pool("tea", 5), "limit=5"),
    ],
)
def test_wrong_arguments_are_one_clear_error(shared, call, message):
    with pytest.raises(ArgumentError, match=message):
        call(shared)


def test_type_error_of_a_callback_is_raised_unchanged(kb):
    def broken(_progress):
        raise TypeError("mine")

    questions = [kbkit.Question(question="tea", relevant=["tea.html"])]
    with pytest.raises(TypeError, match=r"^mine$") as error:
        kb.feedback.evaluate(questions, on_progress=broken)
    assert not isinstance(error.value, ArgumentError)


def test_collections_iterate_count_and_look_up(kb):
    document, chunk = next(iter(kb.documents)), next(iter(kb.chunks))
    rating = kb.rate(chunk.id, 4, query="tea")
    assert len(kb.documents) == len(list(kb.documents)) == len(kb.documents.list()) == 1
    assert len(kb.chunks) == len(list(kb.chunks)) > 0
    assert (len(kb.ratings), list(kb.ratings), kb.ratings[rating.id]) == (1, [rating], rating)
    assert kb.documents[document.id] == kb.documents[document.uri] == document
    assert document.id in kb.documents
    assert document.uri in kb.documents
    assert "http://x.org/coffee.html" not in kb.documents
    assert kb.chunks[chunk.id] == chunk
    assert chunk.id in kb.chunks
    assert "other" not in kb.chunks
    assert rating.id in kb.ratings
    assert -1 not in kb.ratings
    for collection in (kb.documents, kb.chunks, kb.ratings, kb.sources):
        assert len(collection.to_frame()) == len(collection)
        assert "<table" in collection._repr_html_()
    with pytest.raises(NotFoundError, match="no rating with id 99"):
        kb.ratings[99]


def test_html_of_a_collection_is_escaped(kb):
    kb.add("<script>boom()</script>", "Words.")
    assert "<script>" not in kb.documents._repr_html_()


def test_ids_and_uris_are_accepted_everywhere(kb):
    document = kb.documents["http://x.org/tea.html"]
    kb.rate(document.uri, 5, rater="ann")
    kb.rate(document.id, 3, rater="bob")
    kb.rate(Target(TargetKind.DOCUMENT, document.id), 1, rater="cyd")
    assert {rating.target for rating in kb.ratings} == {Target(TargetKind.DOCUMENT, document.id)}
    assert kb.ratings.of(document.uri) == kb.ratings.of(document.id) == list(kb.ratings)
    assert kb.ratings.total(document.uri).raters == 3
    assert kb.chunks.of(document.uri) == kb.chunks.of(document.id) == list(kb.chunks)
    assert kb.documents.update(document.uri, title="Teas").title == "Teas"
    kb.documents.delete(document.uri)
    assert len(kb.documents) == 0
    assert len(kb.ratings.of(document.id)) == 3, "also of what is gone"


@pytest.mark.parametrize(
    "look",
    [
        lambda kb, name: kb.documents[name],
        lambda kb, name: kb.chunks.of(name),
        lambda kb, name: kb.ratings.of(name),
        lambda kb, name: kb.ratings.total(name),
        lambda kb, name: kb.rate(name, 5),
        lambda kb, name: kb.documents.update(name, title="x"),
        lambda kb, name: kb.documents.delete(name),
    ],
)
def test_missing_document_names_the_nearest(shared, look):
    with pytest.raises(NotFoundError, match=r"did you mean 'http://x\.org/tea\.html'"):
        look(shared, "http://x.org/teas.html")
    with pytest.raises(NotFoundError, match="take an id from a search"):
        look(shared, "?")


def test_target_of_another_kind_is_not_found(kb):
    with pytest.raises(NotFoundError):
        kb.rate(Target(TargetKind.CHUNK, next(iter(kb.documents)).id), 5)


def test_add_and_update_return_the_document(kb):
    added = kb.add("Milk", "White.", tags=["dairy"])
    assert (added.title, added.uri) == ("Milk", "text:Milk")
    assert (added.tags, added.chunks) == (("dairy",), 1)
    changed = kb.documents.update(added.id, tags=["cold"])
    assert (type(changed), changed.id, changed.tags) == (kbkit.DocumentInfo, added.id, ("cold",))


def test_source_may_be_a_mapping(kb, tmp_path):
    (tmp_path / "a.md").write_text("# Apples\n\nRed.\n")
    assert kb.ingest({"type": "files", "path": "*.md"}, base=tmp_path).new == 1
    (source,) = kb.sources
    assert (source.type, source.location) == ("files", "*.md")
    assert kb.sources["*.md"] == kb.sources[source.id] == source
    assert kb.sources.paths() == [(tmp_path / "*.md", ())]
    kb.sources.remove("*.md")
    assert (len(kb.sources), [d.title for d in kb.documents.list()]) == (0, ["Tea"])


def test_sync_takes_one_source_or_several(kb, tmp_path):
    line = {"uri": "a:1", "title": "One", "text": "Words."}
    (tmp_path / "a.jsonl").write_text(json.dumps(line))
    spec = JsonlSource(path=str(tmp_path / "a.jsonl"))
    assert kb.sync(spec).new == 1
    assert kb.sync([spec]).same == 1
    assert kb.sync([]).gone == 0
    assert len(kb.sources) == 0
    with pytest.raises(ConfigError, match="documents go into"):
        kb.sync([{"text": "Words."}])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"type": "fils", "path": "x"}, "^type: 'fils' is unknown; did you mean 'files'"),
        ({"type": "files"}, "^path: is missing"),
        ({}, "^type: is missing; give one of crawl"),
        ({"path": "docs"}, "^type: is missing; give one of crawl"),
        ("docs", "give sources, such as FilesSource"),
        (7, "give sources, such as FilesSource"),
        (DocumentsReader([SourceDocument("a:1", "One", "Words.")]), "is a reader, not a source"),
    ],
)
def test_invalid_sources_are_refused(shared, wrong, message):
    for read in (shared.ingest, shared.sync):
        with pytest.raises(ConfigError, match=message):
            read(wrong)
    assert len(shared.sources) == 0


def test_every_public_source_can_be_ingested():
    named = [name for name in kbkit.__all__ if name.endswith("Source")]
    assert len(named) == 9
    for name in named:
        assert issubclass(getattr(kbkit, name), type(FilesSource(path="x")).__mro__[1])
