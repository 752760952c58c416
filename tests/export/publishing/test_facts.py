"""Facts beside documents on published pages."""

import json
import re

import pytest

from kbkit import Workspace
from kbkit.recipes import FilesSource, PackageSource, PageSource
from kbkit.testing import serve_folder

TEXTS = {
    "bread": "---\nlicense: CC BY 4.0\ncopyright: © Baker\n---\n# Bread\n\n"
    "## Baking {#baking}\n\nBread is baked in a hot oven from wheat dough.\n",
    "rolls": "# Rolls\n\nRolls are small breads, baked in the oven from the same wheat dough.\n",
    "tides": "# Tides\n\nThe moon moves the sea, so the water rises and falls twice a day.\n",
    "moons": "# Moons\n\nThe moon goes round the earth in a month and moves the sea's tides.\n",
}


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    folder = tmp_path_factory.mktemp("facts")
    (folder / "notes").mkdir()
    for name, text in TEXTS.items():
        (folder / "notes" / f"{name}.md").write_text(text)
    with Workspace(folder / "kb") as workspace:
        kb = workspace.create("notes", description="Of bread and of the sea")
        kb.ingest(FilesSource(path="notes"), PackageSource(name="nh3"), base=folder)
        bread = next(d for d in kb.documents if d.title == "Bread")
        kb.rate(bread.id, 5)
        kb.rate(kb.chunks.of(bread.id)[0].id, 1)
        report = kb.export(folder=folder / "out", build=False)
        yield kb, folder / "out/docs", report


def page(docs, title):
    return next(path for path in docs.rglob("*.md") if f"\n# {title}" in path.read_text("utf-8"))


def related(docs, title):
    text = page(docs, title).read_text("utf-8").partition("**Related passages**")[2]
    return [
        line.removeprefix("- [").partition("]")[0]
        for line in text.splitlines()
        if line.startswith("- [")
    ]


@pytest.mark.parametrize(
    ("title", "nearest"),
    [("Bread", "Rolls"), ("Rolls", "Bread › Baking"), ("Tides", "Moons"), ("Moons", "Tides")],
)
def test_related_passages_are_of_similar_documents(exported, title, nearest):
    found = related(exported[1], title)
    assert found[0] == nearest
    assert title not in found
    assert len(found) <= 4


def test_related_passage_links_to_its_heading(exported):
    text = page(exported[1], "Rolls").read_text("utf-8")
    assert re.search(r"bread\.md\?passage=Bread%20is%20baked%20[\w%.]+#baking\)", text)


def test_ratings_of_a_document_outrank_those_of_its_chunks(exported):
    assert "rated 5.0 of 5 by 1 person" in page(exported[1], "Bread").read_text("utf-8")
    known = json.loads((exported[1] / "documents.json").read_text())["documents"]
    rated = {each["title"]: each["rating"] for each in known if "rating" in each}
    assert rated == {"Bread": {"average": 5.0, "people": 1}}


def test_provenance_counts_stated_licenses(exported):
    text = (exported[1] / "about.md").read_text("utf-8")
    assert "| files | notes |" in text
    assert "| none stated | - | 3 |" in text
    assert "| CC-BY-4.0 | © Baker | 1 |" in text.replace(
        "[CC-BY-4.0](https://creativecommons.org/licenses/by/4.0/)", "CC-BY-4.0"
    )


def test_each_page_ends_with_source_and_license(exported):
    docs = exported[1]
    license_ = "[CC-BY-4.0](https://creativecommons.org/licenses/by/4.0/). © Baker"
    text = page(docs, "Bread").read_text("utf-8").rstrip()
    assert text.endswith(f"Source: notes/bread.md. License: {license_}")
    assert "License: not stated." in page(docs, "Tides").read_text("utf-8")


def test_machine_readable_files_have_licenses(exported):
    kb, docs, _ = exported
    listed = json.loads((docs / "documents.json").read_text())["documents"]
    known = {each["title"]: each for each in listed}
    assert known["Bread"]["license"] == "CC-BY-4.0"
    assert "license" not in known["Tides"]
    assert "\nLicense: CC-BY-4.0. © Baker\n" in (docs / "llms-full.txt").read_text("utf-8")
    frame = kb.documents.to_frame().set_index("title")
    assert frame.loc["Bread", "license"] == "CC-BY-4.0"
    assert frame.loc["Bread", "attribution"] == "© Baker"
    assert frame["license"].isna().sum() == 3


@pytest.mark.slow
def test_fidelity_is_counted_once_for_each_source(tmp_path):
    pages = tmp_path / "pages"
    pages.mkdir()
    (pages / "a.html").write_text(
        "<html><body><main><h1>A</h1><p>Words of this page.</p><pre>code of it</pre></main></body>"
    )
    with Workspace(tmp_path / "kb") as workspace, serve_folder(pages) as url:
        kb = workspace.create("web")
        one = PageSource(url=f"{url}a.html", allow_private=True)
        kb.ingest(one, FilesSource(path=str(tmp_path / "none")), PackageSource(name="nh3"))
        kb.refresh()
        kb.export(folder=tmp_path / "out", build=False)
    text = (tmp_path / "out/docs/about.md").read_text("utf-8")
    assert "measured on 1 page." in text
    assert "| code blocks | 1 of 1 | 100.0% |" in text


def test_second_export_writes_no_page(exported):
    kb, docs, report = exported
    again = kb.export(folder=docs.parent, build=False)
    assert (again.written, again.unchanged) == (0, report.written)


def test_knowledge_bases_with_no_or_one_document_are_exported(tmp_path):
    with Workspace(tmp_path / "kb") as workspace:
        kb = workspace.create("none")
        assert kb.export(folder=tmp_path / "out", build=False).documents == 0
        kb.add("One", "# One\n\ntext\n")
        assert kb.export(folder=tmp_path / "out", build=False).documents == 1
        kb.documents.delete(next(iter(kb.documents)).id)
        assert kb.export(folder=tmp_path / "out", build=False).documents == 0
