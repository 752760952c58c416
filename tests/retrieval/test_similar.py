"""The context of a chunk, and similar chunks."""

import pytest

import kbkit
from kbkit.errors import ConfigError, NotFoundError
from kbkit.knowledge_base import handle_of


@pytest.fixture(scope="module")
def kb(tmp_path_factory):
    with kbkit.open(tmp_path_factory.mktemp("similar")) as workspace:
        kb = workspace.create("garden")
        for name in ("Roses", "Lilies", "Tulips"):
            kb.add(
                name,
                f"## Watering\n\n{name} need water every morning.\n\n"
                f"## Pests\n\nSnails and aphids eat {name.lower()}.",
                source=f"https://garden.example/flowers/{name.lower()}.html",
                tags=["flower", name.lower()],
            )
        engines = "https://garden.example/engines.html"
        kb.add("Engines", "An engine burns fuel.", document_type="manual", source=engines)
        yield kb


def test_similar_chunks_come_nearest_first_without_the_chunk(kb):
    seed = kb.search("watering roses")[0].chunk
    hits = kb.similar(seed.id, limit=5)
    assert hits.query == "Roses › Watering"
    assert seed.id not in [hit.chunk.id for hit in hits]
    assert {hit.title for hit in hits[:2]} == {"Lilies", "Tulips"}
    assert all(hit.chunk.heading_path[-1] == "Watering" for hit in hits[:2])
    scores = [hit.score for hit in hits]
    assert scores == sorted(scores, reverse=True)
    assert all(hit.parts.lexical == hit.parts.document == 0 for hit in hits)
    assert len(kb.similar(seed.id, limit=2)) == 2


def test_similar_chunks_are_filtered(kb):
    seed = kb.search("watering roses")[0].chunk
    hits = kb.similar(seed.id, filters={"tags": "tulips"})
    assert {hit.title for hit in hits} == {"Tulips"}


def test_unknown_chunk_and_limit_0_are_errors(kb, tmp_path):
    with kbkit.open(tmp_path) as other:
        other.create("elsewhere").add("Roses", "Roses need water.")
        strange = next(iter(other["elsewhere"].chunks)).id
    for chunk_id in ("nothing", strange):
        with pytest.raises(NotFoundError, match="no chunk with id"):
            kb.similar(chunk_id)
        with pytest.raises(NotFoundError, match="no chunk with id"):
            kb.context(chunk_id)
    with pytest.raises(ConfigError, match="limit=0: give a whole number, 1 or more"):
        kb.similar(next(iter(kb.chunks)).id, limit=0)


def test_context_has_the_chunks_before_and_after(kb):
    document = kb.documents["https://garden.example/flowers/roses.html"]
    chunks = list(kb.chunks.of(document.id))
    assert len(chunks) == 2
    assert kb.context(chunks[0].id) == chunks
    assert kb.context(chunks[1].id, before=0) == chunks[1:]
    assert kb.context(chunks[1].id, before=9, after=0) == chunks
    with pytest.raises(ConfigError, match="before=-1"):
        kb.context(chunks[0].id, before=-1)
    with pytest.raises(ConfigError, match=r"after='2'"):
        kb.context(chunks[0].id, after="2")  # type: ignore[arg-type]


def test_tags_and_folders_are_counted(kb):
    assert kb.documents.tags() == {"flower": 3, "lilies": 1, "roses": 1, "tulips": 1}
    assert next(iter(kb.documents.tags())) == "flower"
    assert kb.documents.folders() == {"flowers": 3}


def test_revision_changes_with_documents_and_ratings(kb):
    seen = {handle_of(kb).revision()}
    chunk = next(iter(kb.chunks))
    kb.search("water")
    assert handle_of(kb).revision() in seen
    rating = kb.rate(chunk.id, 3)
    seen.add(handle_of(kb).revision())
    kb.ratings.delete(rating.id)
    kb.add("Lawn", "Grass needs water.")
    seen.add(handle_of(kb).revision())
    assert len(seen) == 3
