"""What each format gives: everything that is in the file, and where it stood."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from kbkit.errors import SourceError
from kbkit.ingest.cutting import chunk
from kbkit.models import DocumentType
from kbkit.recipes import ChunkingSpec, FilesSource
from kbkit.sources import open_reader
from kbkit.sources.base import Outcome, SourceContext, SourceEvent
from kbkit.sources.files import read_file
from kbkit.sources.formats import parse
from kbkit.sources.parts import Part
from kbkit.sources.untrusted import UnreadableError

_spec = importlib.util.spec_from_file_location("samples", Path(__file__).parent / "samples.py")
samples = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(samples)


def one(name: str, data: bytes) -> Part:
    (part,) = parse(name, data)
    return part


def spans(part: Part, strategy: str = "auto", size: int = 1000):
    form = str(part.metadata.get("format", ""))
    spec = ChunkingSpec(strategy=strategy, size=size)
    return [
        (span, part.content[span.start : span.end])
        for span in chunk(part.content, DocumentType.OTHER, spec, form)
    ]


def test_pdf_keeps_pages_headings_and_paragraphs() -> None:
    part = one("x.pdf", samples.pdf(12))
    assert (part.title, part.metadata) == (
        "Pump manual",
        {"format": "pdf", "pages": 12, "author": "Ada"},
    )
    assert re.findall(r"(?m)^# (.+)$", part.content) == [f"Chapter {n}" for n in range(1, 13)]
    assert "7. Chapter 7" not in part.content  # the printed heading became the heading
    for page in range(1, 13):
        for paragraph in range(3):
            assert f"\n\nParagraph {paragraph} of page {page}. The pump" in part.content
    assert part.content.count("running head") == part.content.count("of the manual") == 1
    cut = [(span, text) for span, text in spans(part) if "Paragraph" in text]
    assert [span.page for span, _ in cut] == list(range(1, 13))
    assert [span.heading_path[-1:] for span, _ in cut][1:] == [
        (f"Chapter {n}",) for n in range(2, 13)
    ]
    assert all(f"of page {span.page}." in text for span, text in cut)


def test_pages_of_a_pdf_may_take_3000_characters() -> None:
    part = one("x.pdf", samples.pdf(2, paragraphs=6))
    longest = max(len(text) for _, text in spans(part))
    assert 1000 < longest <= 3000
    assert max(len(text) for _, text in spans(part, size=500)) <= 500
    assert max(len(text) for _, text in spans(part, "paragraph")) <= 1000


def test_pdf_without_outline_or_title_is_named_by_its_file() -> None:
    part = one("dir/some.pdf", samples.pdf(1, outline=False))
    assert "\n\n# 1. Chapter 1\n\nParagraph 0" in part.content
    assert [span.page for span, _ in spans(part)] == [1]


def test_docx_keeps_headings_lists_code_and_tables() -> None:
    part = one("x.docx", samples.docx())
    assert part.title == "Valve <guide>"
    assert part.content.startswith("# Valves & pumps\n\nThe pump has to be primed")
    for piece in (
        "## Steps\n\n1.  Open\n2.  Close\n\n-   A point",
        "```\ndef open():\n    return 1 < 2\n```",
        "| Part | Price |\n| --- | --- |\n| Valve | 10 \\| 20 |",
    ):
        assert piece in part.content
    assert len(spans(part)) == 1  # paragraphs fill chunks


def test_pptx_keeps_slides_levels_notes_and_tables() -> None:
    part = one("x.pptx", samples.pptx())
    assert part.title == "Slide title 1"
    assert part.content.count("- First point\n    - Inner &lt;b>point") == 2
    assert "| Part | Price |\n| --- | --- |\n| Valve | 10 |" in part.content
    assert [(s.page, s.heading_path) for s, _ in spans(part)] == [
        (1, ("Slide title 1",)),
        (2, ("Slide title 2",)),
    ]
    assert "> Say this on 2" in part.content


def test_sheets_are_documents_and_every_chunk_has_the_header() -> None:
    first, second = parse("book.xlsx", samples.xlsx(200))
    assert (first.title, first.name) == ("book: Sheet 1", "Sheet 1")
    assert second.name == "Sheet 2"
    cut = spans(first)
    assert len(cut) > 3
    for span, text in cut:
        assert "| Part | Price | Note |" in text
        assert len(text) <= 1000
        assert span.heading_path[-1].startswith("Rows ")
    rows = re.findall(r"(?m)^\| (P1-\d+) \| ([\d.]+) \|", first.content)
    assert rows == [(f"P1-{n}", f"{n * 1.5:g}") for n in range(200)]
    assert one("one.xlsx", samples.xlsx(3, sheets=1)).title == "one"


@pytest.mark.parametrize(("name", "delimiter"), [("x.csv", ";"), ("x.csv", ","), ("x.tsv", "\t")])
def test_csv(name: str, delimiter: str) -> None:
    part = one(name, samples.csv_file(100, delimiter))
    assert "| Part | Price | Größe |" in part.content
    assert "| P3 | 3 | two lines |" in part.content
    assert all("Größe" in text for _, text in spans(part))
    assert len(re.findall(r"(?m)^\| P\d+ \|", part.content)) == 100


def test_wide_tables_are_written_a_row_at_a_time() -> None:
    header = ",".join(f"a rather long name of column {n}" for n in range(20))
    row = ",".join(f"v{n}" for n in range(20))
    part = one("x.csv", f"{header}\n{row}\n".encode())
    assert "## Row 2\n\n- **a rather long name of column 0**: v0\n" in part.content


def test_epub_gives_a_document_a_chapter() -> None:
    first, second = parse("x.epub", samples.epub())
    assert (first.title, first.name) == ("The book: Chapter 1", "OEBPS/one.xhtml")
    assert second.name == "OEBPS/two b.xhtml"
    assert "```\n  code <2>\n```" in second.content
    assert first.metadata["author"] == "Ada"
    font = samples.epub("OEBPS/font.otf")
    assert len(parse("x.epub", font)) == 2
    with pytest.raises(UnreadableError, match="DRM"):
        parse("x.epub", samples.epub("OEBPS/one.xhtml"))


def test_notebooks_keep_cells_and_outputs_as_text() -> None:
    part = one("x.ipynb", samples.notebook())
    assert part.title == "Analysis"
    assert part.content == (
        "# Analysis\n\nWords.\n\n````python\nprint('```')\n````\n\n```text\nhello\nworld\n```\n\n"
        "```text\n42\n```\n\n```text\nValueError: bad\n```\n"
    )


def test_rst_keeps_what_sphinx_adds_and_reads_no_other_file() -> None:
    part = one("x.rst", samples.RST)
    for piece in (
        "# Widgets",
        "`Valve`",
        "a label",
        "`code`",
        "**New in version 2.1**",
        "> The valve.",
        "## `open(valve, *, slowly=False)`",
        "```python\nopen(v)   # <now>\n```",
        "Pump(size, colour=None)",
        "Pumps water.",
        "With an argument",
        "StoredPage text.",
        "## Deeper",
        "| a | 1 |",
    ):
        assert piece in part.content
    for piece in ("root:", "script", "alert", "maxdepth"):
        assert piece not in part.content


def test_code_of_rst_that_names_no_language_has_none() -> None:
    part = one("x.rst", b"T\n=\n\n.. code-block::\n\n   a = 1\n\n.. testcode::\n\n   b = 2\n")
    assert part.content.endswith("```\na = 1\n```\n\n```\nb = 2\n```\n")


def test_data_has_a_heading_a_key() -> None:
    part = one("x.json", samples.JSON.encode())
    assert re.findall(r"(?m)^#+ (.+)$", part.content)[:4] == [
        "x.json",
        "name",
        "parts",
        "Items 0 to 12",
    ]
    assert part.content.count('"note": "xxx') == 40
    part = one("x.yaml", samples.YAML.encode())
    assert "## services\n\n```yaml\nservices:\n  web:\n    <<: *base\n" in part.content
    assert "# a comment" in part.content
    assert "## name\n\n```yaml\n# about the service\nname: pump\n```" in part.content
    items = "".join(f"- id: {n}\n  text: {'x' * 30}\n" for n in range(60))
    part = one("x.yml", items.encode())
    assert re.sub(r"(?m)^(#.*|```.*|)\n", "", part.content) == items


@pytest.mark.parametrize("name", ["x.py", "x.go", "x.rs", "x.sql", "x.unknown.c"])
def test_source_code_keeps_every_line(name: str) -> None:
    text = samples.PYTHON if name == "x.py" else samples.GO
    part = one(name, text.encode())
    code = [line for line in part.content.split("\n") if line.strip()]
    kept = [line for line in code if not line.startswith(("```", "## `", "### `", "# `"))]
    assert kept == [line for line in text.split("\n") if line.strip()]


def test_source_code_stands_under_its_definitions() -> None:
    part = one("x.py", samples.PYTHON.encode())
    heads = re.findall(r"(?m)^##+ (.+)$", part.content)
    assert heads[:3] == ["`hello(name, *rest, loud, **more)`", "`Big`", "`Big.method0(self, a)`"]
    assert "# says hello\n@decorated\ndef hello" in part.content
    part = one("x.go", samples.GO.encode())
    assert re.findall(r"(?m)^## (.+)$", part.content) == ["`Hello`", "`Valve`"]
    assert one("x.py", b"print 'old'\n").content == "# `x.py`\n\n```python\nprint 'old'\n```\n"


def test_read_file_gives_documents_or_one_reason() -> None:
    documents = read_file("up.xlsx", samples.xlsx(3), tags=("new",))
    assert [document.uri for document in documents] == ["up.xlsx/Sheet 1", "up.xlsx/Sheet 2"]
    assert documents[0].tags == ("new",)
    assert read_file("x.md", b"# T\n")[0].title == "T"
    (page,) = read_file("x.html", samples.HTML, document_type=DocumentType.FAQ)
    assert (page.title, page.document_type) == ("Pump", DocumentType.FAQ)
    for name, data, reason in (
        ("x.pdf", samples.encrypted_pdf(), r"^x\.pdf: encrypted"),
        ("x.pdf", b"%PDF-1.4\nnothing", "broken"),
        ("x.doc", b"x", r"save it as \.docx"),
        ("x.exe", b"x", "not read"),
        ("x.docx", b"", "empty"),
        ("x.json", b"{", "line 1"),
        ("x.txt", b"%PDF-1.4", "a PDF, not text"),
    ):
        with pytest.raises(SourceError, match=reason):
            read_file(name, data)


def events(spec: FilesSource, base: Path) -> dict[str, SourceEvent]:
    return {event.uri: event for event in open_reader(spec).events(SourceContext(base=base))}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    docs = tmp_path / "docs"
    for name, data in samples.every().items():
        path = docs / "deep" / name if name.endswith("x") else docs / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    (docs / "locked.pdf").write_bytes(samples.encrypted_pdf())
    (docs / "node_modules").mkdir()
    (docs / "node_modules" / "x.js").write_text("x()")
    (docs / ".hidden.md").write_text("x")
    (tmp_path / "secret.md").write_text("# Secret")
    (docs / "leak.md").symlink_to(tmp_path / "secret.md")
    (docs / "loop").symlink_to(docs)
    return tmp_path


def test_a_folder_of_all_formats(folder: Path) -> None:
    found = events(FilesSource(path="docs"), folder)
    read = [uri for uri, event in found.items() if event.outcome is Outcome.FETCHED]
    assert len(read) == len(samples.every()) + 2  # two sheets and two chapters
    said = {uri: event.reason for uri, event in found.items() if event.reason}
    assert said == {
        "docs/leak.md": "a link that leads out of the folder",
        "docs/locked.pdf": "encrypted: it opens with a password only",
    }
    assert list(found) == sorted(found, key=lambda uri: uri.split("/"))
    assert found["docs/book.epub/OEBPS/one.xhtml"].document.metadata["chapter"] == 1


def test_globs_exclude_and_limit(folder: Path) -> None:
    found = events(FilesSource(path="docs/**/*.md"), folder)
    assert set(found) == {"docs/leak.md", "docs/note.md"}
    assert found["docs/leak.md"].document is None
    spec = FilesSource(path="docs", exclude=("deep/**", "*.[ce]*", "data.*", "leak.md", "*.p*"))
    kept = {"docs/note.md", "docs/note.txt", "docs/page.html", "docs/parts.tsv"}
    assert set(events(spec, folder)) == kept | {
        "docs/work.ipynb",
        "docs/widgets.rst",
        "docs/pump.go",
    }
    spec = FilesSource(path="docs/*.txt", exclude=("note*",))
    assert events(spec, folder) == {}
    found = events(FilesSource(path="docs", exclude=("*.p*", "*.epub"), limit=2), folder)
    assert found["docs"].reason.endswith("more files are beyond the limit of 2")
    assert len(found) == 3


@pytest.mark.slow
def test_files_become_searchable_and_outlive_a_failure(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import kbkit

    with kbkit.open(folder / "work") as workspace:
        kb = workspace.create("papers")
        report = kb.ingest(FilesSource(path="docs", exclude=("*.html",)), base=folder)
        assert report.new == len(samples.every()) + 1
        assert {problem.uri for problem in report.skipped} == {"docs/leak.md", "docs/locked.pdf"}
        hits = [
            hit
            for hit in kb.search("primed pump paragraph", limit=50)
            if hit.uri == "docs/manual.pdf"
        ]
        assert sorted(hit.chunk.page for hit in hits) == [1, 2, 3, 4, 5]
        for hit in hits:
            assert f"of page {hit.chunk.page}." in hit.chunk.text
        again = kb.refresh()
        assert (again.same, again.gone, again.chunks_embedded) == (report.new, 0, 0)
        # files that cannot be read this time keep what is known of them, parts included
        monkeypatch.setattr("kbkit.sources.formats.FILE_SECONDS", 0.0001)
        failed = kb.refresh()
        assert failed.gone == 0
        states = {document.uri: document.state.value for document in kb.documents}
        assert states["docs/book.epub/OEBPS/two b.xhtml"] == "stale"
        assert states["docs/deep/parts.xlsx/Sheet 1"] == "stale"
        assert states["docs/note.md"] == "current"
        monkeypatch.undo()
        (folder / "docs" / "book.epub").unlink()
        assert kb.refresh().gone == 2
