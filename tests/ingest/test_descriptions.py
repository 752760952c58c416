"""Descriptions of documents in a line, and documents that are indexes."""

import pytest

import kbkit
from kbkit.ingest.cutting import DESCRIPTION_LENGTH, describe, is_index
from kbkit.text.markdown.structure import outline

PROSE = "Brews leaves in water that is nearly boiling, as long as you like it to."
TEA = f"# Tea\n\n{PROSE}\n"
MANUAL = f"# tea(1)\n\n{PROSE}\n\n## NAME\n\ntea - make tea\n"
SHORT = f"# Tea\n\nBriefly.\n\n{PROSE}\n\nMore of it follows here, in many words."
NOTES = (
    "# Tea\n\nNew in version 3.2: all of this, which is as long as a paragraph.\n\n"
    f"Note that none of this is of any importance to those who read here.\n\n{PROSE}"
)
LANGUAGES = (
    "# Tea\n\nIn other languages: [German](d.html) | [French](f.html) | [Dutch](n.html)"
    f" [Old Norse](o.html) | [High Valyrian](v.html)\n\n{PROSE}\n"
)
JAPANESE = "緑茶は、摘んだ葉をすぐに蒸して作るお茶です。水は七十五度がよい。"
GERMAN = "Ein Aufguss aus den Blättern der Teepflanze, heiß oder kalt getrunken."


@pytest.mark.parametrize(
    ("title", "content", "stated", "line"),
    [
        ("Tea", TEA, "How to brew it", "How to brew it"),
        ("tea(1)", MANUAL, "Manual pages", "tea - make tea"),
        ("Tea", TEA, " Tea. ", PROSE),  # no more than the title
        ("Tea", TEA, ["How"], PROSE),
        ("Tea", TEA, "", PROSE),
        ("Tea", "# Tea\n", "a\x1b[31mb\u202e\n\n c\x00", "a [31mb c"),
        ("Tea", SHORT, "", PROSE),
        ("Tea", NOTES, "", PROSE),
        ("Tea", LANGUAGES, "", PROSE),
        ("p.T", "```python\nclass p.T()\n```\n\nSource: `p/tea.py`, line 14, in p 0.2\n", "", ""),
        ("Tea", "Deprecated since version 3.2, and for many good reasons too.", "", ""),
        ("Tea", "# Tea\n\nHow to *brew* [it](http://a.invalid).\n", "", "How to brew it."),
        ("Tea", "tea", "", ""),
        ("Word", "tea", "", "tea"),
        ("Prices", "| tea | price |\n| --- | --- |\n| green | 3 |\n", "", ""),
        ("Code", "```\nbrew(water, leaves)\n```\n", "", ""),
        ("List", "- one\n- two\n", "", ""),
        ("", "", "", ""),
        ("緑茶", f"# 緑茶\n\n{JAPANESE}\n", "", JAPANESE),
        ("Tee", f"# Tee\n\n{GERMAN}\n", "", GERMAN),
    ],
)
def test_description_is_stated_or_from_the_text(title, content, stated, line):
    assert describe(title, content, {"description": stated}) == line


@pytest.mark.parametrize("stated", ["", f"{PROSE} " * 20], ids=["begins", "states"])
def test_long_description_ends_with_a_sentence(stated):
    line = describe("Tea", " ".join([PROSE] * 20), {"description": stated})
    assert line == " ".join([PROSE] * 4)
    assert len(line) <= DESCRIPTION_LENGTH
    assert describe("Tea", "leaves of tea " * 200, {}).endswith(("leaves", "of", "tea"))


@pytest.mark.parametrize("lines", [9_900, 9_970, 9_999, 10_050])
def test_description_with_a_known_outline_is_the_same(lines):
    content = "```\n" + "x\n" * lines + f"```\n\n{PROSE * 3}\n\n## NAME\n\ntea - make tea\n"
    line = describe("Tea", content, {})
    assert describe("Tea", content, {}, structure=outline(content)) == line
    assert bool(line) is (lines < 9_990)


LINKS = "".join(f"- [leaf number {n}](http://a.invalid/{n})\n" for n in range(20))


@pytest.mark.parametrize(
    ("content", "index"),
    [
        (f"# All leaves\n\n{LINKS}", True),
        (f"# All leaves\n\n{LINKS}\n{PROSE}", True),
        (f"# All leaves\n\n{LINKS}\n" + PROSE * 10, False),
        ("- [leaf](http://a.invalid)\n" * 9, False),  # a note
        ("- leaf\n" * 100, False),
        ("```\n" + "a[i](x)\n" * 100 + "```\n" + PROSE * 40, False),
        ("[" * 50_000 + "](" * 50_000, False),
        ("", False),
    ],
    ids=["links", "led", "text", "few", "terms", "code", "hostile", "empty"],
)
def test_index_is_mostly_links(content, index):
    assert is_index(content) is index


def described(kb):
    return {document.title: document.description for document in kb.documents}


def page(name, text, meta):
    return (
        f"<html><head><title>{name}</title>{meta}</head><body><main><h1>{name}</h1>"
        f"<p>{text}</p></main></body></html>"
    )


ALL = '<meta property="og:description" content="The best site of tea in the world.">'
OWN = '<meta name="Description" content="How &lt;b&gt;black&lt;/b&gt; tea&#10;is brewed">'


def test_description_stated_by_all_pages_of_a_site_is_ignored(workspace, tmp_path):
    site = tmp_path / "site"
    site.mkdir()
    text = "Here stands what the page about {} tea says, and no other page does."

    def write(name, meta):
        (site / f"{name}.html").write_text(page(name, text.format(name), meta))

    for name, meta in (("green", ALL), ("white", ALL), ("black", ALL + OWN)):
        write(name, meta)
    kb = workspace.create("tea")
    source = kbkit.MirrorSource(path=str(site), base_url="http://tea.invalid/")
    kb.ingest(source)
    expected = {name: text.format(name) for name in ("green", "white")}
    expected["black"] = "How <b>black</b> tea is brewed"
    assert described(kb) == expected
    # a later page states the same
    write("yellow", ALL)
    assert kb.ingest(source).new == 1
    expected["yellow"] = text.format("yellow")
    assert described(kb) == expected
    kb.documents.update("http://tea.invalid/green.html", tags=["leaf"])
    assert described(kb) == expected
    (hit,) = kb.search("yellow tea", limit=1)
    assert hit.description == expected["yellow"]
    assert hit.to_dict()["description"] == expected["yellow"]


def test_description_is_stated_in_front_matter_or_metadata(workspace, tmp_path):
    (tmp_path / "tea.md").write_text(f"---\ndescription: How to brew it\n---\n# Tea\n\n{PROSE}\n")
    kb = workspace.create("tea")
    kb.ingest(kbkit.FilesSource(path=str(tmp_path / "tea.md")))
    assert described(kb) == {"Tea": "How to brew it"}
    added = kb.add("Soil", PROSE, metadata={"description": "What it grows in"})
    assert added.description == "What it grows in"
    assert list(kb.documents.to_frame()["description"]) == ["How to brew it", "What it grows in"]


def test_index_ranks_behind_other_documents(workspace):
    kb = workspace.create("tea")
    kb.add("All leaves", f"# All leaves\n\n{LINKS}")
    brewing = f"# Brewing\n\n{PROSE} A leaf needs water, and its number is told on the box."
    kb.add("Brewing", brewing)
    hits = kb.search("leaf number")
    assert [hit.title for hit in hits] == ["Brewing", "All leaves"]
    assert hits[1].score < hits[0].score / 3
    assert hits[1].score == pytest.approx(hits[1].parts.total)
    assert [hit.title for hit in kb.search("leaf number 17", mode="lexical")][-1] == "All leaves"
    assert kb.search("leaves", filters={"source": "text:All"})[0].title == "All leaves"
