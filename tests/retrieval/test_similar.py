"""What stands around a chunk, and what is like it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import kbkit
from kbkit import KnowledgeBase
from kbkit.errors import ConfigError, NotFoundError
from kbkit.knowledge_base import handle_of


@pytest.fixture(scope="module")
def kb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeBase]:
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
        kb.add(
            "Engines",
            "An engine burns fuel in its cylinders.",
            document_type="manual",
            source="https://garden.example/engines.html",
        )
        yield kb


def test_what_is_like_a_chunk_comes_nearest_first_without_it(kb: KnowledgeBase):
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


def test_filters_hold_for_what_is_like_a_chunk(kb: KnowledgeBase):
    seed = kb.search("watering roses")[0].chunk
    hits = kb.similar(seed.id, filters={"tags": "tulips"})
    assert {hit.title for hit in hits} == {"Tulips"}


def test_a_chunk_that_is_not_there(kb: KnowledgeBase, tmp_path):
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


def test_context_is_what_stands_before_and_after(kb: KnowledgeBase):
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


def test_tags_and_folders_are_counted(kb: KnowledgeBase):
    assert kb.documents.tags() == {"flower": 3, "lilies": 1, "roses": 1, "tulips": 1}
    assert next(iter(kb.documents.tags())) == "flower"
    assert kb.documents.folders() == {"flowers": 3}


def test_the_revision_changes_with_documents_and_ratings(kb: KnowledgeBase):
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
