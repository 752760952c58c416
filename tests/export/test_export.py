import json
from dataclasses import replace
from datetime import timedelta

import pytest
from filelock import FileLock

from kbkit.errors import ConflictError, ExportError
from kbkit.export import Facts, export_pages
from kbkit.export.facts import MANIFEST, ExampleQuestion, Manifest, RelatedPassage, SourceFacts
from kbkit.models import DocumentState, DocumentType
from kbkit.recipes import SiteSpec
from kbkit.runtime.progress import ignore
from tests.export.conftest import body_of, front_matter, times_of

SITE = SiteSpec()


@pytest.fixture
def export(tmp_path, info):
    """A function that exports documents into `tmp_path`."""

    def run(*documents, progress=ignore, about=None, **options):
        return export_pages(about or info(), documents, tmp_path, SITE, progress, **options)

    return run


def test_document_becomes_a_page(tmp_path, document, info):
    page = document(
        "https://example.org/guide/start.html",
        "# Start {#start}\n\n[next](next.html#x) [out](/other.html)\n",
        title="Start",
        tags=("a", "b"),
    )
    other = document("https://example.org/guide/next.html", "text", title="Next")
    report = export_pages(info(documents=2), [page, other], tmp_path, SITE)
    path = tmp_path / "pages/example.org/guide/start.md"
    assert front_matter(path) == {
        "title": "Start",
        "source": "https://example.org/guide/start.html",
        "document_type": "reference",
        "since": "2026-11-21",
        "tags": ["a", "b"],
    }
    text = body_of(path)
    assert text.startswith("\n[notes](../../../index.md)\n\n# Start {#start}\n\nSource: ")
    assert "[https://example.org/guide/start.html](https://example.org/guide/start.html)" in text
    assert "[reference](../../../types/reference.md) · text of 2026-11-21 · " in text
    assert "[\\#a](../../../tags/a-" in text
    assert "[next](next.md#x) [out](https://example.org/other.html)" in text
    assert (report.documents, report.unchanged, report.removed) == (2, 0, 0)
    assert report.written == len(Manifest.read(tmp_path).files) - 1  # without llms-full.txt


def test_figures_have_their_own_page(tmp_path, document, info):
    pages = [
        document(f"https://h/{part}/{n}", title=f"{part} {n}") for part in "ab" for n in range(4)
    ]
    export_pages(info(description="All of it", documents=8), pages, tmp_path, SITE)
    figures = (tmp_path / "figures.md").read_text("utf-8")
    parts = "| Documents | [8];3,210;| Sections | 2 |;8 [reference];crawl, package;.svg)"
    for part in (*parts.split(";"), "| Fetched | 2026-11-21 |"):
        assert part in figures
    other = [
        replace(document(f"https://h/{n}", title=f"{n}"), document_type=DocumentType.OTHER)
        for n in range(9)
    ]
    export_pages(info(documents=17), [*pages, *other], tmp_path, SITE)
    assert "| Types" not in (tmp_path / "figures.md").read_text("utf-8")
    export_pages(info(description="All of it", documents=8), pages, tmp_path, SITE)
    home = (tmp_path / "index.md").read_text("utf-8")
    assert "All of it" in home
    assert "[figures](figures.md)" in home
    assert not {"3,210", "| Chunks", ".svg"} & set(home.split())


def test_home_page_shows_questions_and_sections(tmp_path, document, export):
    pages = [
        document(f"https://h/{part}/{n}", title=f"{part} {n}") for part in "ab" for n in range(7)
    ]
    pages[0] = replace(pages[0], description="How it begins. " + "word " * 40)
    front = replace(document("https://h/index.html", title="Front"), description="What it is")
    questions = [
        ExampleQuestion("Where *is* it?\n", ("https://h/none", "https://h/b/1", "https://h/b/2")),
        ExampleQuestion("Who knows?", ("https://h/none",)),
    ]
    sources = [SourceFacts("crawl", "https://h/", day=day) for day in ("2026-11-26", "2026-11-25")]
    export(*pages, front, facts=Facts(questions=questions, sources=sources))
    home = (tmp_path / "index.md").read_text("utf-8")
    assert "\n15 documents, last refreshed 2026-11-26: [by type" in home
    assert "\n\nWhat it is\n" in home  # without a description of the knowledge base
    question = "- Where \\*is\\* it? → [b 1](pages/h/b/1.md), [b 2](pages/h/b/2.md)\n"
    assert f"## Questions that it answers\n\n{question}\n## " in home
    assert "Who knows" not in home
    sections = home.split("## Sections\n\n- [a](sections/a-")[1].split("## ")[0]
    assert ".md)  \n  a 0, a 1, a 2 (7 documents)\n- [b](sections/b-" in sections
    assert "## More documents\n\n- [Front](pages/h/index.md): What it is\n" in home


def test_second_export_writes_nothing(tmp_path, document, export):
    pages = [document(f"https://h/{n}", f"text {n}") for n in range(5)]
    export(*pages)
    times = times_of(tmp_path, "[!.]*")
    report = export(*pages)
    assert (report.written, report.unchanged, report.removed) == (0, 12, 0)
    assert times_of(tmp_path, "[!.]*") == times


def test_refetched_documents_rewrite_no_page(tmp_path, document, export):
    pages = [document(f"https://h/{n}", f"text {n}") for n in range(5)]
    export(*pages)
    times = times_of(tmp_path, "[!.]*.*")
    later = [replace(page, fetched_at=page.fetched_at + timedelta(days=9)) for page in pages]
    export(*later)
    changed = {path.name for path, time in times.items() if path.stat().st_mtime_ns != time}
    assert changed == {"figures.md", "about.md", "documents.json", "documents-by-type.svg"}
    known = json.loads((tmp_path / "documents.json").read_text())["documents"]
    assert {(each["fetched"], each["since"]) for each in known} == {("2026-11-30", "2026-11-21")}
    export(*later[1:], replace(later[0], content="other"))
    assert front_matter(tmp_path / "pages/h/0.md")["since"] == "2026-11-30"
    home = (tmp_path / "index.md").read_text("utf-8")
    assert "[https://h/0](pages/h/0.md): changed 2026-11-30" in home
    assert "pages/h/1.md): " not in home


def test_export_writes_changes_and_removes_vanished_pages(tmp_path, document, info, export):
    first = [document(f"https://h/a/{n}", f"text {n}", title=f"t{n}") for n in range(5)]
    export(*first)
    (tmp_path / "pages/h/mine.md").write_text("mine")
    (tmp_path / "own.md").write_text("mine too")
    written = (tmp_path / "pages/h/a/1.md").stat().st_mtime_ns
    report = export(*first[:3], document("https://h/a/3", "changed", title="t3"))
    assert report.removed == 1
    assert (tmp_path / "pages/h/a/1.md").stat().st_mtime_ns == written  # no neighbour changed
    assert "changed" in (tmp_path / "pages/h/a/3.md").read_text("utf-8")
    assert not (tmp_path / "pages/h/a/4.md").exists()
    export(about=info(documents=0))
    left = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.md")}
    own = {"own.md", "pages/h/mine.md"}
    assert left == own | {"index.md", "browse.md", "figures.md", "about.md"}
    assert not (tmp_path / "pages/h/a").exists()


def test_edited_page_is_rewritten(tmp_path, document, export):
    page = document("https://h/a", "text")
    export(page)
    path = tmp_path / "pages/h/a.md"
    text = path.read_text("utf-8")
    path.write_text("spoilt")
    assert export(page).written == 1
    assert path.read_text("utf-8") == text


def test_page_is_rewritten_when_a_link_target_becomes_a_page(tmp_path, document, export):
    one = document("https://h/one", "[two](two)")
    two = document("https://h/two", "text")
    far = [document(f"https://h/z{n}") for n in range(3)]  # so that two is no neighbour of one
    export(one, *far)
    assert "[two](https://h/two)" in body_of(tmp_path / "pages/h/one.md")
    export(one, two, *far)
    assert "[two](two.md)" in body_of(tmp_path / "pages/h/one.md")


def test_page_shows_ratings_and_related_passages(tmp_path, document, export):
    one, two = document("https://h/one"), document("https://h/two", title="Two")
    near = {
        one.id: [
            RelatedPassage(two.uri, "part", "A heading", "It says…this, & more"),
            RelatedPassage("https://h/none"),
        ]
    }
    export(one, two)
    export(one, two, facts=Facts(related=near, ratings={one.id: (4.25, 3)}))
    text = body_of(tmp_path / "pages/h/one.md")
    assert "(two.md?passage=It%20says%E2%80%A6this%2C%20%26%20more#part)" in text
    assert "- [Two › A heading]" in text
    assert "none" not in text
    assert "rated 4.2 of 5 by 3 people" in text
    assert front_matter(tmp_path / "pages/h/one.md")["rating"] == 4.25
    assert "\n\nNext: [Two](two.md)\n\n" in text
    assert "\n\nPrevious: [https://h/one](one.md)\n\n" in body_of(tmp_path / "pages/h/two.md")


def test_foreign_files_are_never_overwritten(tmp_path, document, export):
    mine = tmp_path / "pages/h/A.md"
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    export(document("https://h/a", "text"))
    assert mine.read_text() == "mine"
    assert len(list(mine.parent.glob("a-*.md"))) == 1


@pytest.mark.parametrize("name", ["index.md", "types/reference.md"])
def test_foreign_page_of_the_export_is_an_error(tmp_path, document, export, name):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("mine", encoding="utf-8")
    with pytest.raises(ExportError, match="not written by kbkit"):
        export(document("https://h/a"))
    assert (tmp_path / name).read_text(encoding="utf-8") == "mine"


def test_gone_documents_have_no_page_and_stale_ones_a_note(tmp_path, document, export):
    export(
        document("https://h/gone", state=DocumentState.GONE),
        document("https://h/stale", "text", state=DocumentState.STALE),
    )
    assert [path.stem for path in (tmp_path / "pages").rglob("*.md")] == ["stale"]
    assert front_matter(tmp_path / "pages/h/stale.md")["state"] == "stale"
    assert "could not be fetched since" in body_of(tmp_path / "pages/h/stale.md")


def test_hostile_title_is_escaped(tmp_path, document, export):
    title = "x\n---\ntemplate: evil.html\n# y {#z onclick=alert(1)} <script> [a](b) | `c` {{ d }}"
    export(document("https://h/a", "text", title=title))
    path = tmp_path / "pages/h/a.md"
    meta = front_matter(path)
    assert set(meta) == {"title", "source", "document_type", "since"}
    assert "<" not in meta["title"]
    assert "<script" not in path.read_text("utf-8")
    assert sum(line.startswith("# ") for line in body_of(path).splitlines()) == 1
    assert "{{" not in body_of(path)


def test_empty_title_is_replaced_by_the_address(tmp_path, document, export):
    export(document("https://h/a", "text", title=" \n"))
    assert front_matter(tmp_path / "pages/h/a.md")["title"] == "https://h/a"


def test_long_lists_are_paged(tmp_path, document, export):
    names = [(part, n) for part in "ab" for n in range(501)]
    export(*(document(f"https://h/{part}/{n}", title=f"{part}{n}") for part, n in names))
    assert len(list((tmp_path / "sections").iterdir())) == 4
    (second,) = (tmp_path / "sections").glob("a-*-page-2.md")
    assert "a500" in second.read_text("utf-8")
    assert "Page [1](" in second.read_text("utf-8")


def test_top_navigation_stays_small(tmp_path, document, export):
    export(*(document(f"https://h/s{part}/{n}") for part in range(40) for n in range(3)))
    assert len(Manifest.read(tmp_path).top()) <= 25
    home = (tmp_path / "index.md").read_text("utf-8")
    assert home.count("](sections/") == home.count("(3 documents)") == 40


def test_navigation_is_the_whole_tree(tmp_path, document, export):
    pages = [document(f"https://h/{part}/{n}", title=f"{part}{n}") for part in "ab" for n in "123"]
    guide = document("https://h/a/", title="The a")
    export(*pages, guide, document("https://h/", title="<b>Home"))
    nav = Manifest.read(tmp_path).nav
    titles = "Home;<b>Home;The a;b;By type and tag;Figures;Where this comes from"
    assert [item["title"] for item in nav] == titles.split(";")
    assert nav[2]["path"] == "pages/h/a/index.md"
    assert nav[2]["list"].startswith("sections/a-")
    assert nav[3]["path"].startswith("sections/b-")
    for item, names in zip(nav[2:4], (("a1", "a2", "a3"), ("b1", "b2", "b3")), strict=True):
        assert tuple(child["title"] for child in item["children"]) == names
    sections = Manifest.read(tmp_path).sections()
    assert sections["pages/h/a/1.md"] == sections["pages/h/a/3.md"] == "The a"
    assert sections["pages/h/a/index.md"] == sections["about.md"] == ""


def test_progress_is_reported(document, export):
    steps = []
    export(document("https://h/a"), progress=steps.append)
    assert [(step.stage, step.done) for step in steps] == [("export", n + 1) for n in range(8)]
    assert {step.total for step in steps} == {8}


def test_interrupted_export_is_resumed(tmp_path, document, export):
    pages = [document(f"https://h/{n}", f"text {n}") for n in range(5)]

    def stop(step):
        if step.done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export(*pages, progress=stop)
    report = export(*pages[:2])
    assert len(list((tmp_path / "pages").rglob("*.md"))) == 2
    assert report.documents == 2


def test_concurrent_export_into_one_folder_is_refused(tmp_path, document, export):
    with FileLock(tmp_path / ".kbkit-export.lock"), pytest.raises(ConflictError):
        export(document("https://h/a"))


def test_unwritable_folder_is_an_error(tmp_path, document, info):
    (tmp_path / "file").write_text("")
    with pytest.raises(ExportError, match="cannot write"):
        export_pages(info(), [document("https://h/a")], tmp_path / "file" / "docs", SITE)


@pytest.mark.parametrize("text", ["{", '{"format": 99}', "[]", '{"format": 1}'])
def test_damaged_manifest_is_an_error(tmp_path, document, text, export):
    (tmp_path / MANIFEST).write_text(text)
    with pytest.raises(ExportError, match=r"kbkit-export\.json"):
        export(document("https://h/a"))


def test_manifest_with_outside_paths_is_refused(tmp_path, document, info):
    victim = tmp_path / "victim.md"
    victim.write_text("keep")
    docs = tmp_path / "docs"
    docs.mkdir()
    values = {"format": 1, "kb": "x", "title": "x", "documents": {}, "nav": []}
    (docs / MANIFEST).write_text(json.dumps({**values, "files": ["../victim.md"]}))
    with pytest.raises(ExportError, match="outside"):
        export_pages(info(), [document("https://h/a")], docs, SITE)
    assert victim.exists()
