import pytest

from kbkit.export import build_site, export_pages, write_project
from kbkit.export.pages.paths import LinkMap
from kbkit.recipes import SiteSpec

BASE = "https://docs.example.org/guide/start.html"
PATH = "pages/docs.example.org/guide/start.md"


@pytest.fixture
def links() -> LinkMap:
    return LinkMap(
        {
            BASE: PATH,
            "https://docs.example.org/guide/": "pages/docs.example.org/guide/index.md",
            "https://docs.example.org/api/os.path.html": "pages/docs.example.org/api/os.path.md",
            "python:pandas.DataFrame": "pages/pandas/DataFrame.md",
            "notes/a b.md": "pages/files/notes/a-b.md",
        }
    )


@pytest.mark.parametrize(
    ("href", "target"),
    [
        ("#install", "#install"),
        ("index.html", "index.md"),
        ("../api/os.path.html#os.path.join", "../api/os.path.md#os.path.join"),
        ("/guide", "index.md"),
        ("HTTPS://DOCS.example.org:443/guide/#x", "index.md#x"),
        ("//docs.example.org/guide/", "index.md"),
        ("python:pandas.DataFrame#merge", "../../pandas/DataFrame.md#merge"),
        ("missing.html#x", "https://docs.example.org/guide/missing.html#x"),
        ("mailto:a@example.org", "mailto:a@example.org"),
        ("https://example.org/a (b).html", "https://example.org/a%20%28b%29.html"),
        ("javascript:alert(1)", None),
        (" java\nscript:alert(1)", None),
        ("\x01javascript:alert(1)", None),
        ("JAVASCRIPT:alert(1)", None),
        ("vbscript:x", None),
        ("data:text/html,<script>alert(1)</script>", None),
        ("file:///etc/passwd", None),
        ("python:unknown.name", None),
        ("http://[broken", None),
        ("#", None),
    ],
)
def test_links_resolve_to_pages_or_the_source_or_nothing(links, href, target):
    assert links.resolve(href, base=BASE, path=PATH) == target


def test_relative_links_between_files_without_an_address(links):
    def resolve(href):
        return links.resolve(href, base="notes/c.md", path="pages/files/notes/c.md")

    assert resolve("a%20b.md") == resolve("a b.md") == "a-b.md"
    assert resolve("../../index.md") is None


def test_hash_routes_are_separate_pages():
    links = LinkMap(
        {
            "https://x.org/docs/": "docs/index.md",
            "https://x.org/docs/#/guide": "docs/guide.md",
            "https://x.org/docs/#!/old/": "docs/old.md",
        }
    )

    def leads(href):
        return links.resolve(href, base="https://x.org/docs/#/guide", path="docs/guide.md")

    assert leads("https://x.org/docs/") == leads("https://x.org/docs/#/") == "index.md"
    assert leads("https://x.org/docs/#/guide?id=water") == "guide.md#water"
    assert leads("https://x.org/docs/#!/old") == "old.md"
    assert leads("https://x.org/docs/#part") == "index.md#part"
    assert leads("https://x.org/docs/#/none") == "https://x.org/docs/#/none"


@pytest.mark.parametrize(
    ("href", "uri"),
    [
        ("C%23.md", "docs/C#.md"),
        ("100%2520.md", "docs/100%20.md"),
        ("Q%26A%20%231%3F.md#x", "docs/Q&A #1?.md"),
        ("sub/", "docs/sub/index.md"),
        ("sub", "docs/sub/index.md"),
        ("./a", "docs/a.md"),
        ("../docs/a.md?plain=1", "docs/a.md"),
        ("A.MD", "docs/a.md"),
        ("/a.md", "docs/a.md"),
        ("cafe%CC%81.md", "docs/caf\u00e9.md"),
        ("missing.md", None),
        ("../../docs/a.md", None),
        ("javascript:alert(1)", None),
    ],
)
def test_links_between_files_resolve(href, uri):
    names = ("C#.md", "100%20.md", "Q&A #1?.md", "sub/index.md", "a.md", "caf\u00e9.md")
    paths = {f"docs/{name}": f"pages/{number}.md" for number, name in enumerate(names)}
    page = LinkMap(paths).resolve(href, base="docs/b.md", path="pages/b.md")
    expected = uri and paths[uri].removeprefix("pages/") + ("#x" if "#" in href else "")
    assert page == expected


def test_broken_link_keeps_its_text_and_address(tmp_path, document, info, caplog):
    one = document(
        "docs/a.md",
        "# A\n\nSee [the rest](lost/b%E2%80%AE%1B.md) and [b](javascript:x), [c](//evil.test).\n",
        title="A",
    )
    write_project(tmp_path, info("kb", documents=1), SiteSpec())
    export_pages(info("kb", documents=1), [one], tmp_path / "docs", SiteSpec())
    assert "docs/a.md: links that lead nowhere: lost/b%E2%80%AE%1B.md" in caplog.text
    (page,) = (build_site(tmp_path) / "pages").rglob("a.html")
    assert "See the rest <code>lost/b .md</code> and b, c." in page.read_text("utf-8")
