"""Files, mirrors and JSON lines: what is read, what is skipped, and why."""

import json
from pathlib import Path

import pytest

from kbkit.errors import SourceError
from kbkit.export.pages.sections import section_tree
from kbkit.models import DocumentType
from kbkit.models.documents import Crumb, Navigation
from kbkit.recipes import FilesSource, JsonlSource, MirrorSource
from kbkit.sources import Outcome, SourceContext, SourceEvent, open_reader


def events(spec, base: Path) -> dict[str, SourceEvent]:
    return {event.uri: event for event in open_reader(spec).events(SourceContext(base=base))}


def write(folder: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files = {
        "a.md": "---\ntitle: The A\ntags: [x, y]\nowner: me\n---\n# A\n\nText.\n",
        "deep/b-c.txt": "just text\n",
        "page.html": "<title>P</title><h1>Page</h1><p>Some words here.</p>",
        "code.md": "```\n# not a heading\n```\n\n## Real one {#real}\n",
        "empty.md": " \n",
        "binary.txt": b"\x00\x01\x02",
        "latin.txt": "Grüße aus Köln, schöne Stadt".encode("cp1252"),
        "tool.bin": b"x",
    }
    write(tmp_path / "docs", files)
    return tmp_path


def test_folder_is_read_recursively(folder: Path) -> None:
    read = events(FilesSource(path="docs", tags=("all",)), folder)
    document = read["docs/a.md"].document
    assert (document.title, document.tags) == ("The A", ("all", "x", "y"))
    assert document.content == "# A\n\nText.\n"
    assert document.metadata == {"owner": "me"}
    assert read["docs/deep/b-c.txt"].document.title == "b c"
    assert read["docs/page.html"].document.content == "# Page\n\nSome words here.\n"
    assert read["docs/code.md"].document.title == "code"
    assert read["docs/empty.md"].reason == "no text"
    assert read["docs/binary.txt"].reason == "binary data, not text"
    assert "Grüße" in read["docs/latin.txt"].document.content
    assert "docs/tool.bin" not in read


def test_globs_and_single_files(folder: Path) -> None:
    texts = {f"docs/{name}.txt" for name in ("deep/b-c", "binary", "latin")}
    assert set(events(FilesSource(path="docs/**/*.txt"), folder)) == texts
    assert set(events(FilesSource(path=str(folder / "docs" / "a.md")), folder)) == {"docs/a.md"}
    assert "not read" in events(FilesSource(path="docs/tool.bin"), folder)["docs/tool.bin"].reason


def test_missing_file_is_a_clear_error(folder: Path) -> None:
    with pytest.raises(SourceError, match="no such file or folder"):
        events(FilesSource(path="nothing/*.md"), folder)


@pytest.mark.parametrize(
    "front", ["---\n: : :\n---\n", "---\n- a\n---\n", "---\na: &a [*a]\n---\n", "---\nopen"]
)
def test_odd_front_matter_is_text(tmp_path: Path, front: str) -> None:
    (tmp_path / "x.md").write_text(front + "\n# Title\n")
    assert events(FilesSource(path="x.md"), tmp_path)["x.md"].document.content


def test_mirror_has_the_addresses_of_its_site(folder: Path) -> None:
    text = "<p>Words enough for a paragraph of text.</p>"
    files = {
        "site/index.html": f'<h1>Home</h1>{text}<a href="sub dir/x.html">x</a>',
        "site/sub dir/x.html": f"<h1>X</h1>{text}",
        "site/old.html": f"<h1>Old</h1>{text}",
        "site/empty.html": "",
        "secret.html": f"<h1>Secret</h1>{text}",
    }
    write(folder, files)
    (folder / "site/leak.html").symlink_to(folder / "secret.html")
    (folder / "site/loop.html").symlink_to(folder / "site/loop.html")
    base = "https://docs.example/v1"
    mirror = MirrorSource(path="site", base_url=base, exclude=("/old*",))
    read = {uri.removeprefix(base): event for uri, event in events(mirror, folder).items()}
    assert read["/index.html"].document.title == "Home"
    assert f"({base}/sub%20dir/x.html)" in read["/index.html"].document.content
    assert read["/sub%20dir/x.html"].document.title == "X"
    assert read["/leak.html"].reason == "a link that leads out of the folder"
    assert read["/loop.html"].document is None
    assert read["/empty.html"].reason == "empty page"
    assert "/old.html" not in read
    with pytest.raises(SourceError, match="no such folder"):
        events(MirrorSource(path="nowhere", base_url="https://docs.example/"), folder)


def test_json_lines(tmp_path: Path) -> None:
    lines = [
        {"uri": "a", "title": "A", "text": "One.", "tags": ["t"], "document_type": "faq"},
        {"uri": "b", "text": "Two.", "metadata": {"license": "my own"}, "license": "MIT"},
        {"uri": "a", "title": "again", "text": "x"},
        {"uri": "c", "title": "no text"},
        {"uri": "d", "text": "x", "colour": "red"},
        {"uri": "e", "text": "x", "document_type": "novel"},
        {"uri": "f", "text": "x", "tags": "t"},
        {"uri": 1, "text": "x"},
        [1],
    ]
    text = "\n".join(json.dumps(line) for line in lines)
    (tmp_path / "x.jsonl").write_bytes(
        b"\xef\xbb\xbf"
        + text.encode()
        + b'\n\n{"uri": "g"\n\xff\xfe\n'
        + b'{"uri":"h","text":"\\ud800ok","metadata":{"\\udc00":["\\ud800"]}}\n'
        + b'{"uri":"i","text":"x","metadata":{"n":NaN}}\n'
        + b'{"uri":"j","text":"x","content":"y"}\n'
        + b'{"uri":"k","content":"","state":"gone"}\n'
        + b'{"uri":"l","text":"x","metadata":'
        + b"[" * 100_000
        + b"]" * 100_000
        + b"}"
    )
    spec = JsonlSource(path="x.jsonl", tags=("all",))
    results = list(open_reader(spec).events(SourceContext(base=tmp_path)))
    read = {event.uri: event.document for event in results if event.outcome is Outcome.FETCHED}
    assert sorted(read) == ["a", "b", "h"]
    assert (read["a"].document_type, read["a"].tags) == (DocumentType.FAQ, ("all", "t"))
    assert (read["b"].title, read["b"].metadata) == ("b", {"license": "my own"})
    labelled = JsonlSource(path="x.jsonl", document_type="manual", license="MIT")
    first = next(iter(open_reader(labelled).events(SourceContext(base=tmp_path)))).document
    assert (first.document_type, first.metadata) == (DocumentType.MANUAL, {"license": "MIT"})
    assert (read["h"].content, read["h"].metadata) == ("?ok", {"?": ["?"]})
    assert [event.reason for event in results if event.reason] == [
        "line 3: uri is the same as in line 1",
        "line 4: content: is missing",
        "line 5: colour: unknown key; choose from uri, content, title, document_type, tags, "
        "metadata, license, license_url, attribution",
        "line 6: document_type: 'novel' is unknown; choose from manual, tutorial, api_spec, faq, "
        "policy, reference, other",
        "line 7: tags: must be a valid list",
        "line 8: uri: must be a valid string",
        "line 9: not a JSON object",
        "line 11: not JSON (Expecting ',' delimiter at column 1)",
        "line 12: not UTF-8",
        "line 14: not JSON (NaN is not a JSON number)",
        "line 15: text: unknown key; choose from uri, content, title, document_type, tags, "
        "metadata, license, license_url, attribution",
        "line 16: gone from its source already when it was exported",
        "line 17: nested too deeply",
    ]
    with pytest.raises(SourceError, match="cannot be read"):
        list(open_reader(JsonlSource(path="no.jsonl")).events(SourceContext(base=tmp_path)))


NAV = """docs_dir: guide
markdown_extensions:
  - x: !!python/name:os.system
nav:
  - Welcome: index.md
  - Guide:
      - guide/README.md
      - First steps: guide/install.md
      - Deeper:
          - guide/deep.md
  - Elsewhere: https://example.org/
  - About: ../outside.md
"""


def navigation(folder: Path, path: str) -> dict[str, Navigation]:
    """The navigation of documents of a folder, by the ends of their URIs."""
    return {
        uri.removeprefix(f"{path}/"): Navigation.of(event.document.metadata)
        for uri, event in events(FilesSource(path=path), folder).items()
    }


def test_navigation_of_mkdocs_orders_pages(tmp_path: Path) -> None:
    names = ("index", "guide/README", "guide/install", "guide/deep", "guide/lost")
    write(tmp_path / "project/guide", {f"{name}.md": "Some text.\n" for name in names})
    (tmp_path / "project/mkdocs.yml").write_text(NAV)
    base = "project/guide"
    guide = Crumb("Guide", f"{base}/guide/README.md")
    places = navigation(tmp_path, base)
    assert places == {
        "index.md": Navigation((), guide.uri),
        "guide/README.md": Navigation((guide,), f"{base}/guide/install.md"),
        "guide/install.md": Navigation((guide,), f"{base}/guide/deep.md"),
        "guide/deep.md": Navigation((guide, Crumb("Deeper")), ""),  # the next page is outside
        "guide/lost.md": Navigation(),
    }
    read = events(FilesSource(path=base), tmp_path)
    assert read[f"{base}/guide/install.md"].document.title == "First steps"
    root = section_tree(read, {}, {f"{base}/{name}": place for name, place in places.items()})
    items = [item if isinstance(item, str) else item.page for item in root.items]
    assert items == [f"{base}/index.md", guide.uri]


def test_endless_navigation_is_ignored(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("text")
    lines = ["a0: &a0 [{x: []}]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'{{x: *a{n - 1}}}'] * 10)}]" for n in range(1, 19)]
    (tmp_path / "mkdocs.yml").write_text("\n".join([*lines, "nav: *a18", "docs_dir: ."]))
    assert events(FilesSource(path="."), tmp_path)["a.md"].document.metadata == {}


def test_files_without_a_suffix_are_read_and_old_formats_reported(tmp_path: Path) -> None:
    write(tmp_path, dict.fromkeys(("NOTES", "a.md", "old.doc", "picture.png"), "Some text.\n"))
    read = events(FilesSource(path=str(tmp_path)), tmp_path)
    old = ".doc files are not read; save it as .docx"
    reasons = {uri.rpartition("/")[2]: event.reason for uri, event in read.items()}
    assert reasons == {"NOTES": "", "a.md": "", "old.doc": old}


def test_links_by_name_and_between_pages_are_kept(tmp_path: Path) -> None:
    words = "<p>This page has words enough to be read as a page of its own.</p>"
    page = f'<main><h1>Page</h1><p>See <a href="sub/note.md#x">the note</a>.</p>{words}</main>'
    files = {
        "sub/note.md": "# Note\n\nSee [[Other Note]], [[sub/deep#The end|the deep]], [[nobody]], "
        "`[[code]]`.\n",
        "Other Note.md": "# Other\n\nText.\n",
        "sub/deep.md": "# Deep\n\nText.\n",
        "page.html": f"<html><body>{page}</body></html>",
    }
    read = events(FilesSource(path=str(write(tmp_path, files))), tmp_path).values()
    contents = {event.document.title: event.document.content for event in read}
    assert contents["Note"] == (
        "# Note\n\nSee [Other Note](../Other%20Note.md), [the deep](deep.md#the-end), [[nobody]], "
        "`[[code]]`.\n"
    )
    assert "See [the note](sub/note.md#x)." in contents["Page"]
