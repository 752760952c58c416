"""Links, tags and front matter of notes."""

import pytest

from kbkit.files.links import links_of, prose, tags_of
from kbkit.models import FileLink

NOTE = """---
title: Green tea
aliases: [Chai, Sencha]
tags: [drinks, '#hot']
year: 2024
---
# Ignored

A #tag/nested and #über, (#bracket) #2024 no#tag https://x.org/#frag and #end.

[[Coffee]] and [[Coffee|again]] and [[Coffee#Beans]] ![[picture.png]] [[ Milk ]] [[#Here]]
[other](../b%20c.md#x) [site](https://x.org/a.md) [mail](mailto:a@b.md) [up](../../../x.md)

`#code [[Code]]` and

```
#fence [[Fence]] [f](fence.md)
```

    #indented [[Indented]]
"""


def test_tags_and_links_in_code_and_addresses_are_ignored():
    text = prose(NOTE.split("---\n", 2)[2])
    assert tags_of(text) == ["tag/nested", "über", "bracket", "end"]
    targets = [link.target for link in links_of(text, "notes/deep/tea.md")]
    assert targets == ["Coffee", "picture.png", "Milk", "/notes/b c.md"]


@pytest.fixture
def files(workspace):
    return workspace.files


def links(files, path):
    return {link.target: link.path for link in files.links(path)}


def test_document_has_tags_and_front_matter(workspace, files):
    files.write("notes/tea.md", NOTE)
    document = workspace["files"].documents["notes/tea.md"]
    assert document.title == "Green tea"
    assert document.tags == ("drinks", "hot", "tag/nested", "über", "bracket", "end")
    assert document.metadata["aliases"] == ["Chai", "Sencha"]
    assert document.metadata["year"] == 2024
    hits = workspace["files"].search("coffee", filters={"tags": ["über"]})
    assert [hit.uri for hit in hits] == ["notes/tea.md"]


def test_links_and_backlinks_follow_changes(files):
    files.write("a.md", "[[Tea]] [[drinks/tea]] [[Chai]] [[missing]] [x](drinks/tea.md)")
    files.write("deep/b.md", "[[tea.md]] [[../a]] [t](../drinks/tea.md)")
    unresolved = dict.fromkeys(["Tea", "drinks/tea", "Chai", "missing", "drinks/tea.md"], "")
    assert links(files, "a.md") == unresolved
    files.write("drinks/tea.md", NOTE.replace("Coffee", "Cocoa"))
    resolved = dict.fromkeys(["Chai", "Tea", "drinks/tea", "drinks/tea.md"], "drinks/tea.md")
    assert links(files, "a.md") == {**resolved, "missing": ""}
    resolved = dict.fromkeys(["drinks/tea.md", "tea.md"], "drinks/tea.md")
    assert links(files, "deep/b.md") == {**resolved, "../a": "a.md"}
    assert files.backlinks("drinks/tea.md") == ["a.md", "deep/b.md"]
    assert files.backlinks("a.md") == ["deep/b.md"]
    assert files.backlinks("deep") == []
    files.write("deep/tea.md", "# Another\n")  # nearer to deep/b.md
    assert links(files, "deep/b.md")["tea.md"] == "deep/tea.md"
    assert links(files, "a.md")["Tea"] == "deep/tea.md"  # equally near: by name
    files.delete("deep/tea.md")
    assert links(files, "deep/b.md")["tea.md"] == "drinks/tea.md"
    files.move("drinks/tea.md", "drinks/infusion.md")
    assert links(files, "a.md") == {**unresolved, "Chai": "drinks/infusion.md"}
    assert files.backlinks("drinks/infusion.md") == ["a.md"]
    files.write("a.md", "nothing")
    assert files.links("a.md") == files.backlinks("drinks/infusion.md") == []


def test_links_become_relations_and_missing_notes_gaps(workspace, files):
    files.write("tea.md", "# Tea\n\nGoes with [[Lemon]] and [[Honey]] and [sugar](my%20sugar.md).")
    files.write("my sugar.md", "# Sugar\n\nSee [[tea]].")
    files.write("milk.md", "# Milk\n\nNever with [[lemon]].")
    kb = workspace["files"]

    def linked():
        names = {document.id: document.uri for document in kb.documents}
        return {
            (names[each.source.id], names[each.target.id])
            for each in workspace.graph.relations(name="links_to", limit=100)
        }

    assert linked() == {("tea.md", "my sugar.md"), ("my sugar.md", "tea.md")}
    gaps = {gap.name.title(): gap for gap in workspace.graph.gaps(kind="missing")}
    assert set(gaps) == {"Lemon", "Honey"}
    assert list(gaps) == ["Lemon", "Honey"]  # by number of links
    assert "2 notes link to it" in gaps["Lemon"].reason
    assert gaps["Lemon"].target.kind == "file"
    chunks = {chunk.id: chunk for chunk in kb.chunks}
    assert {chunks[known].document_id for known in gaps["Lemon"].start} == {
        kb.documents["milk.md"].id,
        kb.documents["tea.md"].id,
    }
    files.write("fruit/lemon.md", "# Lemon\n\nSour.")
    assert {("tea.md", "fruit/lemon.md"), ("milk.md", "fruit/lemon.md")} <= linked()
    assert [gap.name for gap in workspace.graph.gaps(kind="missing")] == ["Honey"]
    files.delete("fruit")
    assert linked() == {("tea.md", "my sugar.md"), ("my sugar.md", "tea.md")}
    assert files.links("milk.md") == [FileLink("lemon", "")]
