"""Odd names and texts in the graph."""

import pytest

import kbkit
from kbkit.errors import NotFoundError
from kbkit.graph import building
from kbkit.knowledge_base import handle_of
from kbkit.recipes import KnowledgeBaseSpec, RulesAnnotation
from tests.graph.test_building import build

ODD = {
    "Go": "`Go` is a language. Go on and go home.",
    "C": "`C` is a language; C++ and C# are others.",
    "R": "`R` is a language. R.",
    "make": "Run `make` first; you make a cake.",
    "a.*b": "The name `a.*b` is none that matches a then b.",
    "x[0]": "Read `x[0]` now.",
    "$^": "It is `$^` here.",
    "(?P<n>.*)+": "The pattern `(?P<n>.*)+` is only text.",
    "هيكل البيانات": "نص عن هيكل البيانات هنا.",
    "מבנה נתונים": "טקסט על מבנה נתונים כאן.",
    "連結リスト": "これは 連結リスト です。",
}


@pytest.mark.parametrize("name", ODD)
def test_odd_names_of_a_recipe_are_found_related_deleted_and_restored(workspace, name):
    spec = KnowledgeBaseSpec(
        annotation=RulesAnnotation(names=({"name": name}, {"name": "other thing"}))
    )
    kb = workspace.create("odd", spec=spec)
    kb.add("odd", f"# Odd\n\n{ODD[name]} The other thing requires it.", source="http://x.org/odd")
    build(kb)
    graph = workspace.graph
    if name == "$^":  # punctuation alone is not found in texts
        assert graph.entities(name) == []
        return
    assert graph.entity(name).chunks == 1
    assert workspace.about(name).chunks
    graph.relate(name, "needs", "other thing")
    graph.relate("other thing", "needs", name)  # a cycle
    steps = [step.name for step in graph.path("other thing", name)]
    assert steps == ["other thing", graph.entity(name).name]
    graph.delete(name)
    with pytest.raises(NotFoundError):
        graph.entity(name)
    kb.add("odd", f"# Odd\n\n{ODD[name]} Once more.", source="http://x.org/odd")
    build(kb)
    with pytest.raises(NotFoundError):
        graph.entity(name)
    graph.undo()
    assert graph.entity(name).chunks == 1


@pytest.mark.parametrize(
    "text",
    [
        "```python\n" + "\n".join(f"name_{n} = call_{n}({n})" for n in range(60)) + "\n```",
        "| a | b |\n| --- | --- |\n" + "\n".join(f"| `k{n}` | v{n} |" for n in range(60)),
        "Die Verbindung wird geschlossen, weil der Server nicht antwortet. Man muss sie öffnen.",
        "これは文書です。接続は閉じられます。",
        "هذا نص عربي عن الاتصال بالخادم.",
        "\u202eabc\u202c `x\u200dy`",
    ],
    ids=["code", "table", "german", "japanese", "arabic", "controls"],
)
def test_odd_texts_have_one_annotation_without_frame(workspace, kb, text):
    kb.add("odd", f"{text}\n", source="http://x.org/odd")
    build(kb)
    for chunk in kb.chunks:
        (annotation,) = kb.annotations.of(chunk.id)
        assert annotation.frame is None
        assert 0 <= annotation.confidence <= 1
    workspace.graph.gaps()
    workspace.graph.suggestions()
    workspace.graph.to_json()


def test_deleted_entity_stays_deleted_for_the_same_documents(workspace, kb):
    text = "# Pool\n\n## shelf.get() {#shelf.get}\n\nRaises `shelf.Error`.\n"
    kb.add("pool", text, source="http://x.org/pool")
    build(kb)
    graph = workspace.graph
    (raises,) = graph.relations("shelf.get", name="raises")
    assert raises.evidence
    graph.delete("shelf.Error")
    assert graph.relations("shelf.get", name="raises") == []
    assert len(kb.search("shelf.Error")) > 0
    with pytest.raises(NotFoundError, match=r"shelf\.Error"):
        graph.relate("shelf.get", "raises", "shelf.Error")
    # rebuilds, new annotations and adding the same documents again do not restore it
    handle = handle_of(kb)
    kb.annotations.make()
    building.build(handle.stores.database, handle.id)
    kb.documents.delete("http://x.org/pool")
    build(kb)
    kb.add("pool", text, source="http://x.org/pool")
    build(kb)
    workspace.delete(kb.name)
    workspace.undelete(kb.name)
    with pytest.raises(NotFoundError):
        graph.entity("shelf.Error")
    assert graph.relations("shelf.get", name="raises") == []
    graph.undo()
    assert graph.relations("shelf.get", name="raises")[0].evidence


def test_edits_by_hand_outlive_repeated_ingests(workspace, kb, tmp_path):
    page = tmp_path / "docs" / "pool.md"
    page.parent.mkdir()
    page.write_text(
        "# Pool\n\n## shelf.get() {#shelf.get}\n\nRaises `shelf.Error`, returns `shelf.Rack`.\n"
    )
    source = kbkit.FilesSource(path=str(page.parent))
    kb.ingest(source)
    build(kb)
    graph = workspace.graph
    graph.update("shelf.get", description="Ours.", aliases=["the getter"])
    graph.delete(graph.relations("shelf.get", name="raises")[0])
    graph.relate("shelf.get", "returns", "shelf.Rack", weight=0.25, note="by hand")
    for change in ("", "\nMore.\n", "\nAnd more: `shelf.get()` raises `shelf.Error`.\n"):
        page.write_text(page.read_text() + change)
        kb.ingest(source)
        kb.annotations.make()
        build(kb)
        entity = graph.entity("the getter")
        assert (entity.name, entity.description) == ("shelf.get", "Ours.")
        assert graph.relations("shelf.get", name="raises") == []
        (returns,) = graph.relations("shelf.get", name="returns")
        assert (returns.weight, returns.note) == (0.25, "by hand")
