"""Gaps with their reasons, and suggested merges with their evidence."""

import pytest

from kbkit.errors import ConfigError, NotFoundError
from kbkit.models import GapKind

PARTS = "".join(f"## Part {n}\n\nUse `shelf.open()` as {n}.\n\n" for n in range(4))
SHELF = f"# Shelf\n\n## shelf.open {{#shelf.open}}\n\nOpens.\n\n{PARTS}"
RAIN = "".join(f"## {n} o'clock\n\nit rained for long, {n} times.\n\n" for n in range(4))


def gaps(workspace, kind):
    return {gap.name: gap for gap in workspace.graph.gaps(kind=kind)}


def add_pages(kb, text, count=3):
    for number in range(count):
        page = f"# Page {number}\n\n{text} It is page {number}."
        kb.add(f"Page {number}", page, source=f"http://x.org/{number}.html")


def test_name_mentioned_by_several_documents_but_not_described(workspace, kb):
    add_pages(kb, "Set `pool.max_size` and `pool.timeout` first.")
    undescribed = gaps(workspace, "undescribed")
    assert set(undescribed) == {"pool.max_size", "pool.timeout"}
    gap = undescribed["pool.timeout"]
    assert "3 documents mention it" in gap.reason
    texts = {chunk.id: chunk.text for chunk in kb.chunks}
    assert gap.start
    assert all("pool.timeout" in texts[each] for each in gap.start)
    text = "# Pool\n\n## pool.timeout {#pool.timeout}\n\nSeconds to wait."
    kb.add("Pool", text, source="http://x.org/p")
    assert set(gaps(workspace, "undescribed")) == {"pool.max_size"}
    workspace.graph.update("pool.max_size", description="Most connections.")
    assert gaps(workspace, "undescribed") == {}


def test_common_words_literals_and_placeholders_are_not_gaps(workspace, kb):
    add_pages(kb, "Pass `True`, `None`, `foo`, `x` or `name` to *import* example.com and **must**.")
    add_pages(kb, "Call `my_view()` of `app.MyModel` with `yourName` and `mysql.connect()`.")
    assert set(gaps(workspace, "undescribed")) == {"mysql.connect()"}


def test_name_described_but_not_mentioned_elsewhere_is_unlinked(workspace, kb):
    kb.add("shelf", SHELF, source="http://x.org/s")
    assert "shelf.open" in gaps(workspace, "unlinked")
    kb.add("use", "# Use\n\nCall `shelf.open()` first.", source="http://x.org/u")
    assert "shelf.open" not in gaps(workspace, "unlinked")


def test_badly_answered_question_is_a_gap_of_the_names_in_it(workspace, kb):
    add_pages(kb, "Set `pool.timeout` first.")
    chunk = next(iter(kb.chunks))
    kb.rate(chunk.id, 1, query="what is pool.timeout measured in?", rater="ann")
    kb.rate(chunk.id, 2, query="what is pool.timeout measured in?", rater="bob")
    kb.rate(chunk.id, 1, query="how do I bake bread?", rater="ann")
    (gap,) = gaps(workspace, "unanswered").values()
    assert gap.name == "pool.timeout"
    assert "rated 2 at best" in gap.reason
    assert "measured in" in gap.reason
    assert gap.start == (chunk.id,)
    kb.rate(chunk.id, 5, query="what is pool.timeout measured in?", rater="cy")
    assert gaps(workspace, "unanswered") == {}


def test_entity_without_relations_is_an_orphan(workspace, kb):
    workspace.graph.create("Ours", description="By hand.")
    workspace.graph.create("Theirs")
    assert set(gaps(workspace, "orphan")) == {"Ours", "Theirs"}
    workspace.graph.relate("Ours", "needs", "Theirs")
    assert gaps(workspace, "orphan") == {}


def test_document_without_known_names_is_unreached(workspace, kb):
    add_pages(kb, "Set `pool.timeout` first.")
    kb.add("rain", f"# rain\n\n{RAIN}", source="http://x.org/rain.html")
    kb.add("short", "# rain again\n\nit rained.", source="http://x.org/short.html")
    (gap,) = gaps(workspace, "unreached").values()
    document = kb.documents["http://x.org/rain.html"]
    assert (gap.target.kind, gap.target.id, gap.name) == ("document", document.id, "rain")
    assert "none mentions a known name" in gap.reason
    texts = {chunk.id: chunk.text for chunk in kb.chunks}
    assert [texts[each].startswith(("# rain", "## ")) for each in gap.start] == [True] * 3
    kb.add("rain", f"# rain\n\n{RAIN}\n\n`pool.timeout` ends.", source="http://x.org/rain.html")
    assert gaps(workspace, "unreached") == {}


def test_linked_note_that_does_not_exist_is_missing(workspace):
    workspace.files.write("plans/pool.md", "See [[Pool sizes]] and [limits](limits.md).\n")
    workspace.files.write("plans/shelf.md", "As [[pool sizes]] says.\n")
    first, second = workspace.graph.gaps(kind="missing")
    assert (first.target.kind, first.name) == ("file", "Pool sizes")
    assert (second.target.kind, second.name) == ("file", "plans/limits.md")
    assert first.reason == "2 notes link to it, but it does not exist"
    assert second.reason == "plans/pool.md links to it, but it does not exist"
    texts = {chunk.id: chunk.text for chunk in workspace["files"].chunks}
    assert len(first.start) == 2
    assert all("ool sizes]]" in texts[each] for each in first.start)
    assert ["limits.md" in texts[each] for each in second.start] == [True]
    workspace.files.write("Pool sizes.md", "# Pool sizes\n\nTen.\n")
    assert [gap.name for gap in workspace.graph.gaps(kind="missing")] == ["plans/limits.md"]
    workspace.files.write("plans/limits.md", "Five.\n")
    assert workspace.graph.gaps(kind="missing") == []


def test_gaps_have_reasons_and_starts_except_for_entities_by_hand(workspace, kb):
    add_pages(kb, "Set `pool.max_size` and `pool.timeout` first.")
    kb.add("shelf", SHELF, source="http://x.org/s")
    kb.add("rain", f"# rain\n\n{RAIN}", source="http://x.org/rain.html")
    kb.rate(next(iter(kb.chunks)).id, 1, query="what is pool.timeout?")
    workspace.graph.create("Ours")
    workspace.files.write("a.md", "See [[Nothing yet]].\n")
    every = workspace.graph.gaps()
    assert {gap.kind for gap in every} == set(GapKind)
    assert all(gap.reason and gap.weight > 0 for gap in every)
    assert {gap.name for gap in every if not gap.start} == {"Ours"}


def test_gaps_are_filtered_by_kind_and_knowledge_base(workspace, kb):
    add_pages(kb, "Set `pool.timeout` first.")
    workspace.create("empty")
    assert workspace.graph.gaps(kbs=["empty"]) == []
    assert len(workspace.graph.gaps(kbs=["manual"], limit=1, kind="undescribed")) == 1
    with pytest.raises(ConfigError, match="undescribed, unlinked"):
        workspace.graph.gaps(kind="wrong")
    with pytest.raises(ConfigError):
        workspace.graph.gaps(limit=0)
    with pytest.raises(NotFoundError):
        workspace.graph.gaps(kbs=["none"])


def test_acronyms_are_suggested_and_spellings_without_passages_are_not(workspace):
    graph = workspace.graph
    names = "random access memory,RAM,serialisation rule,serialization rule,input file,output file"
    for name in f"{names},phase 1 build,phase 2 build".split(","):
        graph.create(name, type="term")
    (suggestion,) = graph.suggestions()
    assert suggestion.names == ("random access memory", "RAM")
    assert "first letters" in suggestion.evidence


@pytest.mark.parametrize(
    "pair",
    [
        ("serialisation rule", "serialization rule"),
        ("colour map", "color map"),
        ("backend pool", "back-end pool"),
        ("workers queue", "worker queue"),
    ],
)
def test_spellings_in_passages_are_suggested_and_opposites_are_not(workspace, kb, pair):
    others = "**input file**, **output file**, **phase 1 build** and **phase 2 build**"
    add_pages(kb, f"The **{pair[0]}** and **{pair[1]}**, {others}.", 4)
    (suggestion,) = workspace.graph.suggestions()
    assert set(suggestion.names) == set(pair)
    assert "spelled alike" in suggestion.evidence


def test_refused_and_merged_pairs_are_not_suggested_again(workspace):
    graph = workspace.graph
    graph.create("random access memory")
    graph.create("RAM")
    (pair,) = graph.suggestions()
    assert graph.entity("RAM").id == pair.merge
    graph.refuse(pair.keep, pair.merge)
    assert graph.suggestions() == []
    graph.undo()
    assert graph.suggestions() == [pair]
    graph.merge(pair.keep, pair.merge)
    assert graph.suggestions() == []
    assert graph.entity("RAM").name == "random access memory"
