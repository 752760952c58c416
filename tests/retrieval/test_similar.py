"""The context of a chunk, and similar chunks."""

import pytest

import kbkit
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
