"""Local and served knowledge bases."""

import asyncio
from datetime import date

import pytest

import kbkit
from kbkit import errors
from kbkit.client import AsyncWorkspace
from kbkit.models import DocumentState

TEA = "# Green tea\n\nSteep green tea for two minutes.\n\n## Water {#water}\n\nNot hot.\n"
URI = "https://tea.example/a b?kind=green&x=1"


@pytest.fixture(scope="module")
def kb(workspace):
    kb = workspace.create("tea", description="About tea")
    kb.add("Green tea", TEA, source=URI, tags=["hot", "tea"], metadata={"level": [1, None]})
    kb.add("Black tea", "Steep black tea for four minutes.", document_type="manual")
    for number in (f"{number:02}" for number in range(12)):
        kb.add(f"Cup {number}", f"Cup number {int(number)} holds tea.", source=f"doc:cup/{number}")
    kb.improve()  # a server makes summaries later; searches before and after it differ
    return kb


def test_knowledge_base_lifecycle(workspace):
    kb = workspace.create("cups", description="Cups")
    assert (kb.name, kb.info().description, kb.info().id) == ("cups", "Cups", kb.id)
    assert "cups" in workspace
    assert "cups" in list(workspace)
    assert len(workspace) == len(workspace.list())
    assert workspace.describe("cups", description=" All  cups ").info().description == "All cups"
    kb.add("Mug", "A mug is a cup.")
    renamed = workspace.rename("cups", to="mugs")
    assert (renamed.name, kb.name) == ("mugs", "mugs")
    assert [hit.title for hit in kb.search("mug")] == ["Mug"]
    workspace.delete("mugs")
    assert "mugs" not in workspace
    assert [one.name for one in workspace.trash()] == ["mugs"]
    with pytest.raises(errors.NotFoundError):
        kb.info()
    assert workspace.undelete("mugs", to="cups").info().documents == 1
    workspace.delete("cups", forever=True)
    assert workspace.trash() == []


def test_searches(workspace, kb):
    hits = kb.search("how long does green tea steep", limit=3)
    assert isinstance(hits, kbkit.Hits)
    hit = hits[0]
    assert (hit.kb, hit.title, hit.uri, hit.tags) == ("tea", "Green tea", URI, ("hot", "tea"))
    assert hit.chunk == kb.chunks[hit.chunk.id]
    assert hit.chunk.text == TEA[hit.chunk.start : hit.chunk.end]
    assert hit.score == pytest.approx(hit.parts.total)
    assert hit.snippet in TEA.replace("# ", "").replace("\n\n", "\n")
    assert hit.url.startswith(URI + "#")
    assert hits.to_frame().loc[1, "title"] == "Green tea"
    again = workspace.search("how long does green tea steep", kbs=["tea"], limit=3)
    assert again.hits == hits.hits
    (black,) = kb.search("steep", filters={"document_type": "manual"})
    assert black.title == "Black tea"
    assert not kb.search("tea", filters=kbkit.Filters.of({"before": date(2020, 1, 1)}))
    one_each = kbkit.RetrievalSpec(per_document=1)
    lexical = kb.search("steep", mode="lexical", graph=0, retrieval=one_each)
    assert {one.title for one in lexical} == {"Green tea", "Black tea"}
    answer = kb.ask("green tea", limit=2)
    assert (answer.text, answer.hits.hits) == ("", kb.search("green tea", limit=2).hits)
    assert workspace.ask("green tea", kbs=["tea"], limit=2).to_dict() == answer.to_dict()
    found = workspace.context("how long does green tea steep", max_tokens=400)
    assert "two minutes" in found.text
    assert found.tokens <= found.max_tokens == 400
    assert found.pieces[0].citation.uri == URI
    assert kb.similar(hit.chunk.id, limit=2)[0].chunk.id != hit.chunk.id
    (other,) = kb.related(hit.chunk.id)
    assert (other.section, other.shared) == ("Water", ("hot", "tea", "Green tea"))


def test_documents_are_a_collection(kb):
    green = kb.documents[URI]
    assert (green.content, green.state) == (TEA, DocumentState.CURRENT)
    assert green.metadata == {"level": [1, None]}
    assert kb.documents[green.id] == green
    assert URI in kb.documents
    assert "nothing" not in kb.documents
    assert 5 not in kb.documents
    listed = kb.documents.list()
    assert len(kb.documents) == len(listed) == 14
    assert [one.uri for one in listed] == sorted(one.uri for one in listed)
    assert not any(one.content for one in listed)
    assert list(kb.documents) == kb.documents.list(content=True)
    cups = kb.documents.list(filters={"source": "doc:cup"}, after="doc:cup/03", limit=3)
    assert [one.title for one in cups] == ["Cup 04", "Cup 05", "Cup 06"]
    assert kb.documents.part(URI, section="water").document.content == TEA[TEA.index("## W") :]
    assert kb.documents.part(green.id, start=2, end=7).document.content == "Green"
    assert kb.documents.tags() == {"hot": 1, "tea": 1}
    assert kb.documents.folders(depth=1)["cup"] == 12
    assert kb.documents.to_frame().loc[green.id, "content"] == TEA


def test_documents_are_changed_deleted_and_restored(kb):
    added = kb.documents.add("White tea", "Steep white tea for three minutes.", source="doc:white")
    changed = kb.documents.update(added.id, tags=["new"], if_match=added.content_hash)
    assert changed.tags == ("new",)
    for change, values in ((kb.documents.update, {"title": "X"}), (kb.documents.delete, {})):
        with pytest.raises(errors.VersionConflictError, match="read it again"):
            change("doc:white", **values, if_match=added.content_hash)
    rating = kb.rate("doc:white", 4)
    kb.documents.delete("doc:white", if_match=changed.content_hash)
    assert "doc:white" not in kb.documents
    assert kb.documents.trash()[0].uri == "doc:white"
    assert kb.documents.undelete(added.id).tags == ("new",)
    assert kb.ratings.of("doc:white") == [rating]
    kb.documents.delete(added.id)
    kb.ratings.delete(rating.id)


def test_chunks_are_a_collection(kb):
    chunks = list(kb.chunks)
    assert len(kb.chunks) == len(chunks) == 15
    green = kb.chunks.of(URI)
    assert [one.heading_path for one in green] == [("Green tea",), ("Green tea", "Water")]
    assert chunks[-3:-1] == green or green == [one for one in chunks if one in green]
    assert kb.chunks[green[0].id] == green[0]
    assert green[0].id in kb.chunks
    assert "nothing" not in kb.chunks
    assert kb.context(green[1].id, before=1, after=5) == green
    assert kb.context(green[1].id, before=0, after=0) == green[1:]
    first = kb.chunks.list(limit=4)
    uris = {one.id: one.uri for one in kb.documents.list()}
    behind = kb.chunks.list(after=(uris[first[-1].document_id], first[-1].position))
    assert [*first, *behind] == chunks
    assert len(kb.chunks.to_frame()) == 15


def test_ratings_are_a_collection(kb):
    chunk = kb.chunks.of(URI)[0]
    before = len(kb.ratings)
    first = kb.rate(chunk.id, 5, query="green tea", note="Right.", rater="ann")
    assert (first.kb, first.target.id, first.score) == ("tea", chunk.id, 5)
    assert (first.query, first.note, first.rater) == ("green tea", "Right.", "ann")
    other = kb.ratings.add(first.target, 2, rater="bob")
    assert kb.ratings.of(chunk.id) == [first, other]
    total = kb.ratings.total(chunk.id)
    assert (total.raters, total.average) == (2, 3.5)
    assert kb.ratings.total(URI) is None
    assert kb.ratings[first.id] == first
    assert first.id in kb.ratings
    assert list(kb.ratings)[-2:] == [first, other] == kb.ratings.list(after=first.id - 1)
    assert len(kb.ratings) == before + 2
    assert kb.ratings.to_frame().loc[first.id, "rater"] == "ann"
    for rating in (first, other):
        kb.ratings.delete(rating.id)
    assert len(kb.ratings) == before
    assert kb.rate(chunk.id, 3).rater
    kb.ratings.delete(list(kb.ratings)[-1].id)


def test_default_spec(kb):
    assert kb.spec == kbkit.KnowledgeBaseSpec()


WRONG = [
    (lambda ws, kb: kb.search("  "), errors.ConfigError),
    (lambda ws, kb: kb.search(5), errors.ConfigError),
    (lambda ws, kb: kb.search("a", limit=0), errors.ConfigError),
    (lambda ws, kb: kb.search("a", limit="x"), errors.ConfigError),
    (lambda ws, kb: kb.search("a", mode="fuzzy"), errors.ConfigError),
    (lambda ws, kb: kb.search("a", filters={"headin": "x"}), errors.ConfigError),
    (lambda ws, kb: kb.search("a", filters={"after": "soon"}), errors.ConfigError),
    (lambda ws, kb: kb.search("a", filters={"min_rating": 9}), errors.ConfigError),
    (lambda ws, kb: kb.search("a", filters=[]), errors.ConfigError),
    (lambda ws, kb: kb.search("a", graph=9), errors.ConfigError),
    (lambda ws, kb: kb.search("a", retrieval="x"), errors.ConfigError),
    (lambda ws, kb: kb.search("a", 5), errors.ArgumentError),
    (lambda ws, kb: kb.search("a", k=5), errors.ArgumentError),
    (lambda ws, kb: kb.similar("a", k=5), errors.ArgumentError),
    (lambda ws, kb: ws.search("a", kbs=[]), errors.ConfigError),
    (lambda ws, kb: ws.search("a", kbs=["nowhere"]), errors.NotFoundError),
    (lambda ws, kb: ws.context("a", max_tokens=5), errors.ConfigError),
    (lambda ws, kb: ws["nowhere"], errors.NotFoundError),
    (lambda ws, kb: ws.create("No slug"), errors.InvalidNameError),
    (lambda ws, kb: ws.create("files"), errors.InvalidNameError),
    (lambda ws, kb: ws.create("tea"), errors.ConflictError),
    (lambda ws, kb: ws.create("b", embedding="nothing"), errors.EmbedderError),
    (lambda ws, kb: ws.rename("tea", to="No slug"), errors.InvalidNameError),
    (lambda ws, kb: ws.rename("nowhere", to="b"), errors.NotFoundError),
    (lambda ws, kb: ws.undelete("nowhere"), errors.NotFoundError),
    (lambda ws, kb: ws.delete("nowhere"), errors.NotFoundError),
    (lambda ws, kb: kb.add(" ", "text"), errors.ConfigError),
    (lambda ws, kb: kb.add("title", " "), errors.ConfigError),
    (lambda ws, kb: kb.add("title", "text", document_type="poem"), errors.ConfigError),
    (lambda ws, kb: kb.add("title", "text", metadata={"a": float("nan")}), errors.ConfigError),
    (lambda ws, kb: kb.documents["https://tea.example/a b?kind=green"], errors.NotFoundError),
    (lambda ws, kb: kb.documents["../../etc/passwd"], errors.NotFoundError),
    (lambda ws, kb: kb.documents[".."], errors.NotFoundError),
    (lambda ws, kb: kb.documents.update("nothing", title="x"), errors.NotFoundError),
    (lambda ws, kb: kb.documents.update(URI, document_type="poem"), errors.ConfigError),
    (lambda ws, kb: kb.documents.delete("nothing"), errors.NotFoundError),
    (lambda ws, kb: kb.documents.undelete("nothing"), errors.NotFoundError),
    (lambda ws, kb: kb.documents.part(URI, section="Milk"), errors.NotFoundError),
    (lambda ws, kb: kb.documents.part(URI, start=-1), errors.ConfigError),
    (lambda ws, kb: kb.documents.list(filters={"heading": "x"}), errors.ConfigError),
    (lambda ws, kb: kb.documents.list(limit=0), errors.ConfigError),
    (lambda ws, kb: kb.chunks["nothing"], errors.NotFoundError),
    (lambda ws, kb: kb.chunks.of("nothing"), errors.NotFoundError),
    (lambda ws, kb: kb.context("nothing"), errors.NotFoundError),
    (lambda ws, kb: kb.context(kb.chunks.of(URI)[0].id, before=-1), errors.ConfigError),
    (lambda ws, kb: kb.similar("nothing"), errors.NotFoundError),
    (lambda ws, kb: kb.related("nothing"), errors.NotFoundError),
    (lambda ws, kb: kb.rate("nothing", 3), errors.NotFoundError),
    (lambda ws, kb: kb.rate(URI, 6), errors.ConfigError),
    (lambda ws, kb: kb.ratings.delete(10**6), errors.NotFoundError),
    (lambda ws, kb: kb.ratings.of("nothing"), errors.NotFoundError),
    (lambda ws, kb: kb.ratings[10**6], errors.NotFoundError),
]
_MESSAGES: dict[int, str] = {}


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_errors_are_the_same_locally_and_remotely(workspace, kb, number):
    act, kind = WRONG[number]
    with pytest.raises(errors.KbkitError) as caught:
        act(workspace, kb)
    assert type(caught.value) is kind
    if kind is not errors.ConfigError:  # pydantic words those of a server
        assert _MESSAGES.setdefault(number, str(caught.value)) == str(caught.value)


def test_knowledge_bases_can_be_awaited(workspace, url, kb):
    async def use():
        async with AsyncWorkspace(url) as served:
            assert [name async for name in served] == list(workspace)
            there = served["tea"]
            assert (await there.info()).documents == 14
            hits = await there.search("green tea", limit=2)
            assert hits.hits == kb.search("green tea", limit=2).hits
            assert (await there.documents.part(URI)).document == kb.documents[URI]
            assert [one async for one in there.documents] == list(kb.documents)
            assert [one async for one in there.chunks] == list(kb.chunks)
            assert await there.spec() == kb.spec
            created = await served.create("awaited")
            await created.add("A", "B")
            assert [one.title async for one in created.documents] == ["A"]
            with pytest.raises(errors.NotFoundError):
                await served["nowhere"].info()
            await served.delete("awaited", forever=True)

    asyncio.run(use())


def test_version_filter(workspace):
    kb = workspace.create("kettles")
    for version in ("5.9", "5.10"):
        kb.add("Kettle", "It whistles.", source=f"https://kettle.example/en/{version}/kettle")
    (found,) = kb.documents.list(filters={"version": "5.9"})
    assert found.uri == "https://kettle.example/en/5.9/kettle"
    chunk = kb.chunks.of(found.id)[0]
    for look in (
        lambda version: kb.documents.list(filters={"version": version}),
        lambda version: kb.search("whistles", filters={"version": version}),
        lambda version: kb.similar(chunk.id, filters={"version": version}),
    ):
        assert look("5.10")
        with pytest.raises(errors.NotFoundError, match=r"version '5.11'; there are: 5.9, 5.10$"):
            look("5.11")


def test_knowledge_base_change_with_an_old_version_is_refused(workspace):
    kb = workspace.create("pots", description="Pots")
    seen = kb.info().version
    assert seen == next(info.version for info in workspace.list() if info.name == "pots")
    kb.add("Pot", "A pot holds tea.")
    now = kb.info().version
    assert now != seen
    for change in (
        lambda version: workspace.describe("pots", description="Changed", if_match=version),
        lambda version: workspace.rename("pots", to="pans", if_match=version),
        lambda version: workspace.delete("pots", if_match=version),
    ):
        with pytest.raises(errors.VersionConflictError, match="pots: was changed since"):
            change(seen)
    assert kb.info().version == now
    workspace.describe("pots", description="All pots", if_match=now)
    spec = kb.spec
    changed = spec.model_copy(update={"retrieval": kbkit.RetrievalSpec(per_document=1)})
    kb.configure(changed, if_match=spec.version)
    with pytest.raises(errors.VersionConflictError, match="the spec: was changed since"):
        kb.configure(spec, if_match=spec.version)
    assert kb.spec.retrieval.per_document == 1
    assert kb.spec.version == changed.version
    workspace.rename("pots", to="pans", if_match=kb.info().version)
    workspace.delete("pans", forever=True, if_match=kb.info().version)
    assert "pans" not in workspace
