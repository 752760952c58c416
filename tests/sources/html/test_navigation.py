"""Navigation of pages of several generators."""

import pytest

from kbkit.models.documents import Navigation
from kbkit.sources.html.extract import extract

SPHINX = """<link rel="next" title="On" href="b.html#x"/>
<body><div class="related" role="navigation"><ul>
<li class="right"><a href="../genindex.html">index</a></li>
<li class="nav-item nav-item-0"><a href="../index.html">Docs</a> &#187;</li>
<li class="nav-item nav-item-1"><a href="index.html">The Tutorial</a> &#187;</li>
<li class="nav-item nav-item-this"><a href="">A</a></li></ul></div>{text}"""
READ_THE_DOCS = """<body><nav class="wy-nav-side"><ul class="current">
<li class="toctree-l1"><a href="../one.html">One</a></li>
<li class="toctree-l1 current"><a href="#">A</a><ul><li><a href="#part">Part</a></li></ul></li>
<li class="toctree-l1"><a href="b.html">B</a></li></ul></nav>
<ul class="wy-breadcrumbs"><li><a href="../index.html" class="icon icon-home"></a></li>
<li class="breadcrumb-item active">A</li>
<li class="wy-breadcrumbs-aside"><a href="../_sources/a.txt">View page source</a></li></ul>{text}"""
CAPTIONS = """<body><nav class="wy-nav-side"><div><p class="caption"><span>Basics</span></p>
<ul><li><a href="#">A</a></li><li><a href="b.html">B</a></li></ul>
<p class="caption"><span>More</span></p>
<ul><li><a href="c.html">C</a></li></ul></div></nav>{text}"""
FURO = """<body><aside class="sidebar-drawer"><ul><li><a href="#">A</a></li></ul>
<ul class="current"><li class="current"><a href="index.html">The Tutorial</a><ul>
<li><a class="current" href="#">A</a></li><li><a href="b.html">B</a></li></ul></li>
<li><a href="../faq.html">FAQ</a></li></ul></aside>{text}"""
MKDOCS = """<body><div class="navbar"><ul><li class="dropdown"><a href="#">Guide</a>
<ul class="dropdown-menu"><li><a href="a.html">A</a></li><li><a href="b.html">B</a></li></ul></li>
<li><a href="../about.html">About</a></li></ul></div>{text}"""
MDBOOK = """<body><nav id="sidebar" class="sidebar"><ol class="chapter">
<li class="chapter-item"><a href="index.html"><strong>1.</strong> Types</a></li>
<li><ol class="section"><li class="chapter-item"><a href="a.html" class="active">A</a></li>
<li class="chapter-item"><a href="c.html">C</a></li></ol></li></ol></nav>{text}
<a rel="next" href="b.html">Next</a>"""
DOCUSAURUS = """<body><nav aria-label="Breadcrumbs"><ul><li><a href="/">Home</a></li>
<li><a href="/t/index.html">Guides</a></li><li><span>A</span></li></ul></nav>{text}
<nav class="pagination-nav"><a class="pagination-nav__link--prev" href="z.html">Z</a>
<a class="pagination-nav__link pagination-nav__link--next" href="b.html">B</a></nav>"""
APACHE = """<body><div id="path"><a href="https://www.apache.org/">Apache</a> &gt;
<a href="./index.html">How-To</a></div>{text}"""
TEXT = "<main><h1>A</h1><p>" + "Words of a page that says something. " * 9 + "</p></main></body>"

TUTORIAL = ("The Tutorial", "https://h/t/index.html")
HOW_TO = ("How-To", "https://h/t/index.html")


GENERATORS = {
    "sphinx": (SPHINX, [("Docs", "https://h/index.html"), TUTORIAL], "b"),
    "read-the-docs": (READ_THE_DOCS, [], "b"),
    "captions": (CAPTIONS, [("Basics", "")], "b"),
    "furo": (FURO, [TUTORIAL], "b"),
    "mkdocs": (MKDOCS, [("Guide", "")], "b"),
    "mdbook": (MDBOOK, [("1. Types", "https://h/t/index.html")], "b"),
    "docusaurus": (DOCUSAURUS, [("Home", "https://h/"), ("Guides", "https://h/t/index.html")], "b"),
    "apache": (APACHE, [("Apache", "https://www.apache.org/"), HOW_TO], ""),
    "nothing": ("<body>{text}", None, ""),
}


@pytest.mark.parametrize(("page", "crumbs", "following"), GENERATORS.values(), ids=GENERATORS)
def test_pages_of_generators_have_navigation(page, crumbs, following):
    read = extract(page.format(text=TEXT), "https://h/t/a.html")
    navigation = read.navigation
    assert navigation.next == (f"https://h/t/{following}.html" if following else "")
    trail = navigation.breadcrumbs
    assert (trail if trail is None else [(each.title, each.uri) for each in trail]) == crumbs
    assert Navigation.of(read.metadata) == navigation
    assert "Tutorial" not in read.content


@pytest.mark.parametrize(
    "page",
    [
        # a page's own contents, a list in its text, and links of others are no navigation
        '<body><nav><ul><li><a href="#">A</a><ul><li><a href="#x">X</a></li></ul></li></ul></nav>',
        '<body><main><ul><li><a href="a.html">A</a></li><li><a href="b.html">B</a></li>'
        '<li><a href="c.html">C</a></li></ul></main>',
        '<body><nav><a class="next" href="https://other.example/b">Next</a></nav>',
        '<body><nav aria-label="breadcrumb"><a href="javascript:alert(1)">x</a></nav>',
        '<body><a rel="next" href="http://[">x</a><nav><ul><li><a href="http://[">y</a></ul></nav>',
    ],
)
def test_contents_and_foreign_links_are_no_navigation(page):
    assert not extract(page + TEXT, "https://h/t/a.html").navigation
