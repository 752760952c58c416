"""Each format keeps all content of a file, and its place."""

import re
from pathlib import Path

import pytest

from kbkit.errors import SourceError
from kbkit.ingest.cutting import chunk
from kbkit.models import DocumentType
from kbkit.recipes import ChunkingSpec, FilesSource
from kbkit.sources import Outcome, SourceContext, SourceEvent, open_reader
from kbkit.sources.files import read_file
from kbkit.sources.formats import Part, UnreadableError, parse
from tests.sources.formats import samples
from tests.sources.formats.samples import one


def spans(part: Part, strategy: str = "auto", size: int = 1000):
    form = str(part.metadata.get("format", ""))
    spec = ChunkingSpec(strategy=strategy, size=size)
    return [
        (span, part.content[span.start : span.end])
        for span in chunk(part.content, DocumentType.OTHER, spec, form)
    ]


def test_pdf_keeps_pages_headings_and_paragraphs() -> None:
    part = one("x.pdf", samples.pdf(12))
    assert part.title == "Pump manual"
    assert part.metadata == {"format": "pdf", "pages": 12, "author": "Ada"}
    assert re.findall(r"(?m)^# (.+)$", part.content) == [f"Chapter {n}" for n in range(1, 13)]
    assert "7. Chapter 7" not in part.content  # the printed heading became the heading
    for page in range(1, 13):
        for paragraph in range(3):
            assert f"\n\nParagraph {paragraph} of page {page}. The pump" in part.content
    assert part.content.count("running head") == part.content.count("of the manual") == 1
    chunks = [(span, text) for span, text in spans(part) if "Paragraph" in text]
    assert [span.page for span, _ in chunks] == list(range(1, 13))
    for span, text in chunks:
        assert f"of page {span.page}." in text
        assert span.page == 1 or span.heading_path[-1:] == (f"Chapter {span.page}",)


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
    chunks = spans(first)
    assert len(chunks) > 3
    for span, text in chunks:
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


def test_each_chapter_of_an_epub_is_a_document() -> None:
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


def test_rst_keeps_directives_of_sphinx_and_reads_no_other_file() -> None:
    content = one("x.rst", samples.RST).content
    kept = (
        *("# Widgets", "`Valve`", "a label", "`code`", "**New in version 2.1**", "> The valve."),
        "## `open(valve, *, slowly=False)`",
        "```python\nopen(v)   # <now>\n```",
        *("Pump(size, colour=None)", "Pumps water.", "With an argument", "StoredPage text."),
        *("## Deeper", "| a | 1 |"),
    )
    assert [text for text in kept if text not in content] == []
    assert [text for text in ("root:", "script", "alert", "maxdepth") if text in content] == []


def test_code_of_rst_without_a_language() -> None:
    part = one("x.rst", b"T\n=\n\n.. code-block::\n\n   a = 1\n\n.. testcode::\n\n   b = 2\n")
    assert part.content.endswith("```\na = 1\n```\n\n```\nb = 2\n```\n")


def test_each_key_of_data_is_a_heading() -> None:
    content = one("x.json", samples.JSON.encode()).content
    headings = re.findall(r"(?m)^#+ (.+)$", content)
    assert headings[:4] == ["x.json", "name", "parts", "Items 0 to 12"]
    assert content.count('"note": "xxx') == 40
    content = one("x.yaml", samples.YAML.encode()).content
    assert "## services\n\n```yaml\nservices:\n  web:\n    <<: *base\n" in content
    assert "# a comment" in content
    assert "## name\n\n```yaml\n# about the service\nname: pump\n```" in content
    content = one("x.yaml", "a:\n  b: 1\n  # c: 2\nd: 3\n").content
    assert "  # c: 2\n```\n\n## d\n" in content
    items = "".join(f"- id: {n}\n  text: {'x' * 30}\n" for n in range(60))
    content = one("x.yml", items.encode()).content
    assert re.sub(r"(?m)^(#.*|```.*|)\n", "", content) == items


@pytest.mark.parametrize("name", ["x.py", "x.go", "x.rs", "x.sql", "x.unknown.c"])
def test_source_code_keeps_every_line(name: str) -> None:
    text = samples.PYTHON if name == "x.py" else samples.GO
    part = one(name, text.encode())
    code = [line for line in part.content.split("\n") if line.strip()]
    kept = [line for line in code if not line.startswith(("```", "## `", "### `", "# `"))]
    assert kept == [line for line in text.split("\n") if line.strip()]


def test_source_code_is_below_its_definitions() -> None:
    content = one("x.py", samples.PYTHON.encode()).content
    headings = re.findall(r"(?m)^##+ (.+)$", content)
    assert headings[:3] == ["`hello(name, *rest, loud, **more)`", "`Big`", "`Big.method0(self, a)`"]
    assert "# says hello\n@decorated\ndef hello" in content
    content = one("x.go", samples.GO.encode()).content
    assert re.findall(r"(?m)^## (.+)$", content) == ["`Hello`", "`Valve`"]
    assert one("x.py", b"print 'old'\n").content == "# `x.py`\n\n```python\nprint 'old'\n```\n"


def test_read_file_returns_documents() -> None:
    documents = read_file("up.xlsx", samples.xlsx(3))
    assert [document.uri for document in documents] == ["up.xlsx/Sheet 1", "up.xlsx/Sheet 2"]
    assert read_file("x.md", b"# T\n")[0].title == "T"
    assert read_file("x.html", samples.HTML)[0].title == "Pump"


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("x.pdf", samples.encrypted_pdf(), r"^x\.pdf: encrypted"),
        ("x.pdf", b"%PDF-1.4\nnothing", "broken"),
        ("x.doc", b"x", r"save it as \.docx"),
        ("x.exe", b"x", "not read"),
        ("x.docx", b"", "empty"),
        ("x.json", b"{", "line 1"),
        ("x.txt", b"%PDF-1.4", "a PDF, not text"),
    ],
)
def test_read_file_gives_a_reason(name: str, data: bytes, reason: str) -> None:
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


def test_folder_of_all_formats(folder: Path) -> None:
    read = events(FilesSource(path="docs"), folder)
    fetched = [uri for uri, event in read.items() if event.outcome is Outcome.FETCHED]
    assert len(fetched) == len(samples.every()) + 2  # two sheets and two chapters
    assert {uri: event.reason for uri, event in read.items() if event.reason} == {
        "docs/leak.md": "a link that leads out of the folder",
        "docs/locked.pdf": "encrypted: it opens with a password only",
    }
    assert list(read) == sorted(read, key=lambda uri: uri.split("/"))
    assert read["docs/book.epub/OEBPS/one.xhtml"].document.metadata["chapter"] == 1


def test_globs_exclude_and_limit(folder: Path) -> None:
    read = events(FilesSource(path="docs/**/*.md"), folder)
    assert set(read) == {"docs/leak.md", "docs/note.md"}
    assert read["docs/leak.md"].document is None
    spec = FilesSource(path="docs", exclude=("deep/**", "*.[ce]*", "data.*", "leak.md", "*.p*"))
    names = (
        "note.md",
        "note.txt",
        "page.html",
        "parts.tsv",
        "work.ipynb",
        "widgets.rst",
        "pump.go",
    )
    assert set(events(spec, folder)) == {f"docs/{name}" for name in names}
    spec = FilesSource(path="docs/*.txt", exclude=("note*",))
    assert events(spec, folder) == {}
    read = events(FilesSource(path="docs", exclude=("*.p*", "*.epub"), limit=2), folder)
    assert read["docs"].reason.endswith("more files are beyond the limit of 2")
    assert len(read) == 3


@pytest.mark.slow
def test_files_are_searchable_and_kept_after_a_failure(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import kbkit

    with kbkit.open(folder / "work") as workspace:
        kb = workspace.create("papers")
        report = kb.ingest(FilesSource(path="docs", exclude=("*.html",)), base=folder)
        assert report.new == len(samples.every()) + 1
        assert {problem.uri for problem in report.skipped} == {"docs/leak.md", "docs/locked.pdf"}
        hits = kb.search("primed pump paragraph", limit=50)
        hits = [hit for hit in hits if hit.uri == "docs/manual.pdf"]
        assert sorted(hit.chunk.page for hit in hits) == [1, 2, 3, 4, 5]
        for hit in hits:
            assert f"of page {hit.chunk.page}." in hit.chunk.text
        again = kb.refresh()
        assert (again.same, again.gone, again.chunks_embedded) == (report.new, 0, 0)
        # a file that cannot be read this time keeps its documents, parts included
        monkeypatch.setattr("kbkit.sources.formats.ParseTask.seconds", 0.0001)
        assert kb.refresh().gone == 0
        states = {document.uri: document.state.value for document in kb.documents}
        assert states["docs/book.epub/OEBPS/two b.xhtml"] == "stale"
        assert states["docs/deep/parts.xlsx/Sheet 1"] == "stale"
        assert states["docs/note.md"] == "current"
        monkeypatch.undo()
        (folder / "docs" / "book.epub").unlink()
        assert kb.refresh().gone == 2
