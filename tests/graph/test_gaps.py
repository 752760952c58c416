"""Gaps say why they are some, and where to start; merges are suggested with their evidence."""

import pytest

from kbkit.errors import ConfigError, NotFoundError
from kbkit.models import GapKind


def gaps(workspace, kind):
    return {gap.name: gap for gap in workspace.graph.gaps(kind=kind)}


def named_by(kb, text, count=3, start=0):
    for number in range(start, start + count):
        kb.add(
            f"Page {number}",
            f"# Page {number}\n\n{text} It is page {number}.",
            source=f"http://x.org/{number}.html",
        )


def test_what_several_documents_name_and_none_describes(workspace, kb):
    named_by(kb, "Set `pool.max_size` and `pool.timeout` first.")
    found = gaps(workspace, "undescribed")
    assert set(found) == {"pool.max_size", "pool.timeout"}
    gap = found["pool.timeout"]
    assert "3 documents mention it" in gap.reason
    texts = {chunk.id: chunk.text for chunk in kb.chunks}
    assert gap.start
    assert all("pool.timeout" in texts[each] for each in gap.start)
    kb.add(
        "Pool",
        "# Pool\n\n## pool.timeout {#pool.timeout}\n\nSeconds to wait.",
        source="http://x.org/p",
    )
    assert set(gaps(workspace, "undescribed")) == {"pool.max_size"}
    workspace.graph.update("pool.max_size", description="Most connections.")
    assert gaps(workspace, "undescribed") == {}


def test_common_words_literals_and_placeholders_are_no_gaps(workspace, kb):
    named_by(kb, "Pass `True`, `None`, `foo`, `x` or `name` to *import* example.com and **must**.")
    named_by(kb, "Call `my_view()` of `app.MyModel` with `yourName` and `mysql.connect()`.")
    assert set(gaps(workspace, "undescribed")) == {"mysql.connect()"}


def test_what_is_described_and_never_spoken_of_elsewhere(workspace, kb):
    parts = "".join(f"## Part {n}\n\nUse `shelf.open()` as {n}.\n\n" for n in range(4))
    text = f"# Shelf\n\n## shelf.open {{#shelf.open}}\n\nOpens.\n\n{parts}"
    kb.add("shelf", text, source="http://x.org/s")
    assert "shelf.open" in gaps(workspace, "unlinked")
    kb.add("use", "# Use\n\nCall `shelf.open()` first.", source="http://x.org/u")
    assert "shelf.open" not in gaps(workspace, "unlinked")


def test_questions_that_were_answered_badly_are_gaps_of_what_they_are_about(workspace, kb):
    named_by(kb, "Set `pool.timeout` first.")
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


def test_what_nothing_relates_to_is_an_orphan(workspace, kb):
    workspace.graph.create("Ours", description="By hand.")
    workspace.graph.create("Theirs")
    assert set(gaps(workspace, "orphan")) == {"Ours", "Theirs"}
    workspace.graph.relate("Ours", "needs", "Theirs")
    assert gaps(workspace, "orphan") == {}


def test_a_document_that_names_nothing_is_unreached(workspace, kb):
    named_by(kb, "Set `pool.timeout` first.")
    parts = "".join(f"## {n} o'clock\n\nit rained for long, {n} times.\n\n" for n in range(4))
    kb.add("rain", f"# rain\n\n{parts}", source="http://x.org/rain.html")
    kb.add("short", "# rain again\n\nit rained.", source="http://x.org/short.html")
    (gap,) = gaps(workspace, "unreached").values()
    document = kb.documents["http://x.org/rain.html"]
    assert (gap.target.kind, gap.target.id, gap.name) == ("document", document.id, "rain")
    assert "none mentions a known name" in gap.reason
    texts = {chunk.id: chunk.text for chunk in kb.chunks}
    assert [texts[each].startswith(("# rain", "## ")) for each in gap.start] == [True] * 3
    kb.add("rain", f"# rain\n\n{parts}\n\n`pool.timeout` ends.", source="http://x.org/rain.html")
    assert gaps(workspace, "unreached") == {}


def test_a_note_that_others_link_to_and_is_not_there_is_missing(workspace):
    workspace.files.write("plans/pool.md", "See [[Pool sizes]] and [limits](limits.md).\n")
    workspace.files.write("plans/shelf.md", "As [[pool sizes]] says.\n")
    found = workspace.graph.gaps(kind="missing")
    assert [(gap.target.kind, gap.name) for gap in found] == [
        ("file", "Pool sizes"),
        ("file", "plans/limits.md"),
    ]
    first, second = found
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


def test_every_kind_of_gap_has_its_reason_and_where_to_start(workspace, kb):
    """Of one knowledge base that has all of them; those of entities by hand begin nowhere."""
    named_by(kb, "Set `pool.max_size` and `pool.timeout` first.")
    parts = "".join(f"## Part {n}\n\nUse `shelf.open()` as {n}.\n\n" for n in range(4))
    kb.add(
        "shelf",
        f"# Shelf\n\n## shelf.open {{#shelf.open}}\n\nOpens.\n\n{parts}",
        source="http://x.org/s",
    )
    rain = "".join(f"## {n} o'clock\n\nit rained, {n} times.\n\n" for n in range(4))
    kb.add("rain", f"# rain\n\n{rain}", source="http://x.org/rain.html")
    kb.rate(next(iter(kb.chunks)).id, 1, query="what is pool.timeout?")
    workspace.graph.create("Ours")
    workspace.files.write("a.md", "See [[Nothing yet]].\n")
    found = workspace.graph.gaps()
    assert {gap.kind for gap in found} == set(GapKind)
    assert all(gap.reason and gap.weight > 0 for gap in found)
    assert {gap.name for gap in found if not gap.start} == {"Ours"}


def test_gaps_are_asked_for_by_kind_and_knowledge_base(workspace, kb):
    named_by(kb, "Set `pool.timeout` first.")
    workspace.create("empty")
    assert workspace.graph.gaps(kbs=["empty"]) == []
    assert len(workspace.graph.gaps(kbs=["manual"], limit=1, kind="undescribed")) == 1
    with pytest.raises(ConfigError, match="undescribed, unlinked"):
        workspace.graph.gaps(kind="wrong")
    with pytest.raises(ConfigError):
        workspace.graph.gaps(limit=0)
    with pytest.raises(NotFoundError):
        workspace.graph.gaps(kbs=["none"])


def test_acronyms_and_spellings_are_suggested_with_their_evidence(workspace):
    graph = workspace.graph
    for name in (
        "random access memory",
        "RAM",
        "serialisation rule",
        "serialization rule",
        "input file",
        "output file",
        "phase 1 build",
        "phase 2 build",
    ):
        graph.create(name, type="term")
    found = {each.names: each for each in graph.suggestions()}
    assert set(found) == {("random access memory", "RAM")}  # no passage has the others
    assert "first letters" in next(iter(found.values())).evidence


def test_spellings_in_passages_are_suggested_and_opposites_are_not(workspace, kb):
    text = (
        "The **serialisation rule** and **serialization rule**, **input file** and **output file**."
    )
    named_by(kb, text, 4)
    found = {frozenset(each.names) for each in workspace.graph.suggestions()}
    assert found == {frozenset(("serialisation rule", "serialization rule"))}


def test_nothing_merges_by_itself_and_a_refused_pair_is_not_suggested_again(workspace):
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
