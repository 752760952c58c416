"""Which part of a page is content: pages of sites, and pages on their own."""

import pytest

from kbkit.sources.html import parse
from kbkit.sources.html.extract import ExtractedPage, extract
from kbkit.sources.html.fidelity import KINDS, Fidelity
from kbkit.sources.html.metadata import page_title, title_keys
from kbkit.sources.html.site_extractor import SiteTemplate
from tests.sources.html.generated_pages import PAGES, read_site

URL = "https://docs.example/p.html"
TEXT = "It takes a while until the water boils, and a while longer until the tea is ready. "
PARAGRAPHS = "".join(f"<p>{number}. {TEXT}</p>" for number in range(8))


NAMES = ("Kettle", "Cup", "Spoon", "Saucer", "Pot", "Leaf", "Sieve", "Timer", "Tray")


def content(html: str) -> str:
    return extract(html, URL, alone=False).content


def site(*pages: str) -> list[ExtractedPage]:
    """Pages as they are read where they are a site."""
    encoded = {
        f"https://docs.example/p{place or ''}.html": html.encode()
        for place, html in enumerate(pages)
    }
    read = read_site(encoded)
    return [read[url] for url in encoded]


@pytest.mark.parametrize("name", sorted({*PAGES} - {"the contents of a manual"}))
def test_generated_pages_keep_their_content(name: str) -> None:
    page = PAGES[name]
    bodies = (f"<title>Manual</title><body>{body}</body>" for body in (page.html, *page.others))
    assert site(*bodies)[0].content == page.good


@pytest.mark.parametrize(
    ("head", "foot"),
    [
        ('<meta property="og:type" content="article">', ""),
        ('<meta property="article:published_time" content="2026-01-01">', ""),
        ('<script type="application/ld+json">{"@type": "BlogPosting"}</script>', ""),
        ("", '<div id="comments"></div>'),
        ("", '<p class="byline">By Ann</p>'),
    ],
)
def test_articles_of_a_site_have_metadata_comments_or_a_byline(head: str, foot: str) -> None:
    html = (
        "<html><head><title>Tea</title>{}</head><body><article><h1>Tea</h1>"
        f"{PARAGRAPHS}</article>{{}}</body></html>"
    )
    assert extract(html.format(head, foot), URL, alone=False).article
    # a page alone may be an article without any sign
    assert extract(html.format("", ""), URL).article
    assert not extract(html.format("", ""), URL, alone=False).article


def test_author_field_of_a_manual_makes_no_article() -> None:
    fields = '<dl><dt class="author">Author:</dt><dd class="author">Ann</dd></dl>'
    html = f"<title>Tea</title><body><article><h1>Tea</h1>{fields}{PARAGRAPHS}</article></body>"
    assert not extract(html, URL, alone=False).article
    byline = html.replace("<dl>", '<p class="author">Ann</p><dl>')
    assert extract(byline, URL, alone=False).article
    tool = '<meta name="generator" content="DocBook XSL Stylesheets">'
    assert not extract(tool + byline, URL, alone=False).article
    names = byline.replace('p class="author">Ann</p', 'h3 class="author">Ann</h3')
    assert "\n\nAnn\n\n" in extract(tool + names, URL, alone=False).content
    declared = '<meta property="og:type" content="article">'
    assert extract(tool + declared + byline, URL, alone=False).article


@pytest.mark.parametrize(
    ("link", "article"),
    [
        ('<link rel="author" href="mailto:ann@tea.example">', False),
        ('<link rel="author" href="https://tea.example/ann">', True),
        ('<body><a rel="author" href="mailto:ann@tea.example">Ann</a>', True),
    ],
)
def test_mail_address_of_a_maintainer_makes_no_article(link: str, article: bool) -> None:
    html = f"<title>Tea</title>{link}<article><h1>Tea</h1>{PARAGRAPHS}</article>"
    assert extract(html, URL, alone=False).article == article


def test_page_is_no_article_if_its_sections_would_be_lost() -> None:
    body = PAGES["articles that are manuals"].html
    head = "<title>Kettle</title><meta property='og:type' content='article'>"
    page = extract(f"<html><head>{head}</head><body>{body}</body></html>", URL, alone=False)
    assert not page.article
    assert "## Safety\n\nHot.\n\n-   Keep away.\n-   Unplug.\n" in page.content


def test_articles_keep_their_code_or_are_read_whole() -> None:
    head = '<meta property="og:type" content="article">'
    code = "<pre>kettle --boil\n    --minutes 3</pre>"
    article = f"<article><h1>Tea</h1>{PARAGRAPHS}{code}{PARAGRAPHS}</article>"
    assert "```\nkettle --boil\n    --minutes 3\n```" in extract(head + article, URL).content
    assert not extract(article, URL).article


@pytest.mark.parametrize("heading", ["<h2><div>{}</div></h2>", "<div><h2>{}</h2></div>"])
def test_articles_keep_headings_that_name_a_place(heading: str) -> None:
    head = '<meta property="og:type" content="article">'
    named = heading.format('<a name="cups">Cups for the tea</a>')
    article = f"<article><h1>Tea</h1>{PARAGRAPHS}{named}{PARAGRAPHS}</article>"
    page = extract(head + article, URL, alone=False)
    assert page.article
    assert "\n\n## Cups for the tea {#cups}\n\n" in page.content


def test_repeated_titles_are_replaced_by_title_blocks() -> None:
    frame = (
        "<html><head><title>The Kitchen Library</title></head><body><div class='top'>"
        "<div class='summary'><a href='#m'>Members of it</a> <a href='/all'>All members</a></div>"
        "<div class='headertitle'><div class='title'>{0} Reference"
        "<div class='in'><a href='/k'>Module</a></div></div></div></div>"
        "<div class='contents'><p>{1} {0}.</p><h2>Members</h2><p>{0} of {2}</p></div></body></html>"
    )
    pages = site(*(frame.format(name, TEXT * 2, name[::-1]) for name in NAMES))
    assert [page.title for page in pages] == [f"{name} Reference" for name in NAMES]
    assert pages[0].content.startswith("# Kettle Reference\n\n[Module](https://docs.example/k)\n")
    assert "All members" not in pages[0].content


@pytest.mark.parametrize(
    ("head", "heading", "title"),
    [
        ("Lib: src/tea/pot.h File", "<h1>pot.h File</h1>", "src/tea/pot.h File"),
        ("Tea::Pot Class", "<h1>Pot Class</h1>", "Tea::Pot Class"),
        ("tea.pot", "<h1>pot</h1>", "tea.pot"),
        ("Teapot", "<h1>pot</h1>", "pot"),
        ("Of Tea", "<h1>Tea</h1>", "Tea"),
        ("Members", "<h3>- b -</h3><ul><li>boil()</li></ul>", "Members: b"),
        ("Members", "<h3>- b -</h3><p>boil()</p><h3>- c -</h3>", "Members"),
        ("Members", "<h3>Both</h3><ul><li>boil()</li></ul>", "Members"),
        ("Steeping (The Tea Manual, version 7)", "", "Steeping"),
        ("brew(1)", "", "brew(1)"),
    ],
)
def test_titles_name_folders_and_letters_but_no_editions(
    head: str, heading: str, title: str
) -> None:
    page = extract(f"<title>{head}</title><body><div>{heading}<p>{TEXT * 2}</p></div></body>", URL)
    assert page.title == title


@pytest.mark.parametrize(
    ("head", "title"), [("<title>{}(3)</title>", "boil(3)"), ("<title></title>", "boil - a tool")]
)
def test_manual_pages_are_named_by_their_head_or_name_section(head: str, title: str) -> None:
    parts = ("Library", "Synopsis", "Errors", "Notes")
    pages = [
        f"<html><head>{head.format(name)}</head><body><h1>NAME</h1><p>{name} - a tool</p>"
        f"<h1>{parts[place % 4]}</h1><p>{name}: {TEXT * 2}</p></body></html>"
        for place, name in enumerate(("boil", "brew", "pour", "stir", "sip", "wash", "dry", "sort"))
    ]
    read = site(*pages)
    assert read[0].title == title
    assert len({page.title for page in read}) == len(pages)
    assert "# NAME\n\nboil - a tool\n\n# Library\n" in read[0].content


def test_heading_that_menus_repeat_is_written_once() -> None:
    menu = "".join(f"<li><a href='/{name}'>{name}</a></li>" for name in NAMES)
    pages = [
        f"<html><head><title>{name} | Kitchen</title></head><body><ul>{menu}</ul><main>"
        f"<h1 id='top'>{name}</h1><p>{name}: {TEXT * 2}</p></main></body></html>"
        for name in NAMES
    ]
    for name, page in zip(NAMES, site(*pages), strict=True):
        assert page.content.startswith(f"# {name} {{#top}}\n\n{name}: It takes")


@pytest.mark.parametrize(
    ("begin", "end"), [("Lib: ", ""), ("", " (Lib, all of it)"), ("", " — Lib")]
)
def test_name_of_the_site_is_removed_from_titles(begin: str, end: str) -> None:
    names = ["Members", "Members - Functions", "Members - Types", "Files", "Tea - green"]
    names += [f"Part {number}" for number in range(6)]
    frame = "<title>{0}{1}{2}</title><body><div><p>{1}: {3}</p><ul><li>{1}</li></ul></div></body>"
    pages = site(*(frame.format(begin, name, end, TEXT * 2) for name in names))
    assert [page.title for page in pages] == names


def test_part_named_in_the_head_stays_in_the_title() -> None:
    frame = "<title>{0} (Lib)</title><body><main><h1>{1}</h1><p>{1} {2}</p></main></body>"
    names = [(f"Part {number}", f"Part {number}") for number in range(8)]
    names += [("Tea", "Tea"), ("Tea (Index)", "Tea")]
    pages = site(*(frame.format(*name, TEXT * 2) for name in names))
    assert [page.title for page in pages] == [name for name, _ in names]


def test_part_named_in_the_head_stays_after_a_shared_begin() -> None:
    body = parse("<body><h1>tea-1.0: Brew tea</h1></body>").find("body")
    named, common = "tea-1.0: Brew tea (Index - A)", title_keys("tea-1.0: Pots")
    assert page_title(body, body, named, common)[1] == named


def test_heading_and_notes_of_a_list_page_are_content() -> None:
    terms = "".join(f"<dt>-{letter}</dt><dd>{TEXT}</dd>" for letter in "abcdefgh")
    frame = (
        "<title>Options {0}</title><body><div class='section' id='s{0}'>"
        "<div class='header'><p>Next: <a href='n{0}' rel='next'>Cups</a>, Up: "
        "<a href='u{0}' rel='up'>Tea</a></p></div><h3>{0} Options</h3>"
        f"<p>All of {{0}}.</p><dl>{terms}</dl></div><div class='notes'><h4>Notes</h4>"
        "<p>Note {0}.</p></div><hr><p>Next: <a href='n{0}'>Cups</a>, Up: "
        "<a href='u{0}'>Tea</a> [<a href='c'>Contents</a>]</p></body>"
    )
    for number, page in enumerate(site(*map(frame.format, range(9)))):
        for text in (f"### {number} Options", f"All of {number}.", f"#### Notes\n\nNote {number}."):
            assert text in page.content
        assert "Cups" not in page.content


def test_list_with_a_link_to_the_next_page_is_kept() -> None:
    steps = "<p><a href='n' rel='next'>Cups</a> <a href='u' rel='up'>Tea</a></p>"
    items = "<ul><li><a href='n'>Cups</a></li><li><a href='x'>Spoons</a></li></ul>"
    page = f"<body>{steps}<main><h1>Pots</h1><p>{TEXT}</p>{items}</main></body>"
    assert "-   [Cups](https://docs.example/n)\n-   [Spoons]" in extract(page, URL).content


def test_caption_with_the_title_begins_the_page() -> None:
    info = "<table><tr><th>Stability</th><td>stable</td></tr></table>"
    body = f"{info}<p class='caption'>Tea.Pot</p><h1>Pots</h1><p>{TEXT}</p>"
    frame = "<head><title>{}</title></head><body><main>{}</main></body>"
    page = extract(frame.format("Tea.Pot", body), URL, alone=False)
    assert page.title == "Tea.Pot"
    assert page.content.startswith("# Tea.Pot\n\n|  |  |\n")
    assert extract(frame.format("Tea.Pot.Lid", body), URL, alone=False).title == "Pots"


def test_heading_of_class_title_keeps_its_level() -> None:
    page = f"<title>Pots</title><body><main><h2 class='title'>Pots</h2><p>{TEXT}</p></main></body>"
    assert "## Pots" in content(page).splitlines()


def test_trail_to_the_page_is_no_content() -> None:
    trail = "<ul><li>Manual</li><li><a href='/c'>Cups</a></li><li>Tea &amp; Cups</li></ul>"
    parts = "<ul><li><a href='/p'>Pots</a></li><li>Tea &amp; Cups</li></ul>"
    text = content(f"<main>{trail}<h1>Tea &amp; Cups</h1><p>{TEXT}</p>{parts}</main>")
    assert text.startswith("# Tea & Cups\n")
    assert text.endswith("-   [Pots](https://docs.example/p)\n-   Tea & Cups\n")


def row(*names: str) -> str:
    cells = "".join(f"<td>[<a href='/{name}'>{name}</a>]</td>" for name in names)
    return f"<table><tr>{cells}<td></td></tr></table>"


STEPS = row("Up", "Top", "Contents")
CONTROLS = {
    "rows of links that are written twice": (
        f"<main>{STEPS}<h1>Tea</h1><p>{TEXT}</p>{row('Pots', 'Cups', 'Lids')}{STEPS}</main>",
        ["Lids"],
        ["Contents"],
    ),
    "footers, not those of quotations": (
        f"<body><div><h1>Tea</h1><p>{TEXT}</p><blockquote><p>Tea first.</p><footer><a href='/a'>"
        "A drinker</a></footer></blockquote></div><footer>Made by <a href='/t'>a tool</a> on Sunday"
        "</footer></body>",
        ["A drinker"],
        ["a tool"],
    ),
    "notes that are not printed": (
        "<main><h1>Tea</h1><div class='noprint'>From a wiki</div>"
        f"<div class='noprint'><p>{TEXT}</p></div></main>",
        [TEXT.strip()],
        ["From a wiki"],
    ),
    "toggles of headings": (
        "<main><h1>Tea</h1><h2>Parts <small><a href='#' class='a-toggle'>collapse</a></small></h2>"
        f"<h2>In <a href='#' class='fn'>Lids</a></h2><p>{TEXT}</p></main>",
        ["## Parts\n\n## In Lids"],
        ["collapse"],
    ),
    "toggles of lists": (
        "<main><h1>Tea</h1><dl><dt>Is a</dt><dd><ul><li>Pot</li></ul><a href='#'>show all</a></dd>"
        f"</dl><p>{TEXT}<a href='#'>This page</a></p></main>",
        ["This page"],
        ["show all"],
    ),
    "links over menus": (
        "<main><h1>Tea</h1><a class='wiki-jump-link' href='#menu'>Jump to the menu</a>"
        f"<p>{TEXT} See <a class='jumper' href='#pots'>pots below</a>.</p><h2 id='pots'>Pots</h2>"
        "</main>",
        ["[pots below](https://docs.example/p.html#pots)"],
        ["Jump"],
    ),
    "elements named like navigation": (
        f"<main><h1>Tea</h1><div class='menu'><p>1. {TEXT}</p></div>"
        f"<div class='toc'><p>2. {TEXT}<a href='/x'>more</a></p></div>"
        "<div class='pagination'><a href='/1'>Page one</a> <a href='/2'>Page two</a></div>"
        "<div class='sidebar'><ul><li><a href='/a'>Apples</a></li></ul></div>"
        "<span class='lineno'>17</span></main>",
        [f"1\\. {TEXT.strip()}", f"2\\. {TEXT.strip()}"],
        ["Page one", "Apples", "17"],
    ),
    "links to neighbours, not those in text": (
        "<body><div class='nav-panel'><p>Next: <a href='n' accesskey='n' rel='next'>Cups</a>, "
        "Previous: <a href='p' accesskey='p' rel='prev'>Leaves</a> [<a href='c'>Contents</a>]"
        f"</p></div><h2>Water</h2><p>{TEXT}<a href='n' rel='next'>The next chapter</a> tells "
        f"what to drink from. {TEXT}</p>",
        ["[The next chapter](https://docs.example/n) tells"],
        ["Contents", "Leaves"],
    ),
}


@pytest.mark.parametrize(("html", "kept", "removed"), CONTROLS.values(), ids=CONTROLS)
def test_controls_are_removed(html: str, kept: list[str], removed: list[str]) -> None:
    text = content(html)
    assert [part for part in kept if part not in text] == []
    assert [part for part in removed if part in text] == []


def test_texts_around_all_pages_go_and_texts_within_stay() -> None:
    frame = (
        "<body><div id='all'><div class='lead'>Tea house, open daily</div><h1>{0}</h1>"
        "<p>{1} {0}.</p><p>Ask the waiter.</p><p>{0}? {1}</p><p>Printed on tea leaves</p></div>"
    )
    for page, name in zip(site(*(frame.format(n, TEXT) for n in NAMES)), NAMES, strict=True):
        assert page.content.startswith(f"# {name} ")
        assert "Ask the waiter." in page.content
        assert "Tea house" not in page.content
        assert "Printed" not in page.content


def test_page_inside_an_unclosed_header_is_read() -> None:
    html = f"<body><header><h1>Tea</h1>{PARAGRAPHS}<script src='x.js'></script></body>"
    assert content(html).count(TEXT.strip()) == 8


def test_folded_source_of_a_method_is_no_content() -> None:
    html = (
        f"<main><h1>Kettle</h1><h2>boil()</h2><p>{TEXT}</p><div class='method-source-code'>"
        "<pre>def boil\n  heat\nend</pre></div><pre>kettle.boil</pre></main>"
    )
    text = content(html)
    assert "heat" not in text
    assert "```\nkettle.boil\n```" in text
    fidelity = Fidelity()
    fidelity.add(html, text, url=URL)
    assert not any(fidelity.lost[kind] for kind in KINDS)


def test_last_section_that_all_pages_share_stays() -> None:
    frame = (
        "<body><div id='all'><h1>{0}</h1><p>{1} {0}.</p><div><h2>AUTHORS</h2><div><p>Ann wrote it."
        "</p></div></div></div><div>Printed on tea leaves</div></body>"
    )
    for page in site(*(frame.format(name, TEXT) for name in NAMES)):
        assert page.content.endswith("## AUTHORS\n\nAnn wrote it.\n")


def test_links_to_translations_go() -> None:
    link = '<a href="/{0}/p" hreflang="{0}" rel="alternate">{0}</a>'
    links = " | ".join(map(link.format, "abcdef"))
    line = f"<div><p><span>Available in: </span>{links}</p></div>"
    text = f"<p>{TEXT * 3} <a hreflang='de' href='/de'>In German.</a></p>"
    html = f"<html><body><main>{line}<h1>Kettle</h1>{text}{line}</main></body></html>"
    page = extract(html, URL)
    assert page.content.startswith("# Kettle")
    assert "Available" not in page.content
    assert "In German" in page.content


def test_list_that_repeats_the_menu_is_content() -> None:
    items = "".join(
        f'<li><a href="/{name}">All about {name}</a></li>' for name in ("pots", "cups", "tea")
    )
    frame = (
        "<title>{0} - Tea</title><body><div class='page'><aside><ul>{1}</ul></aside><main><div>"
        "<article role='main'><h1>{0}</h1><p>{2}</p>{3}</article></div></main></div></body>"
    )
    pages = [frame.format(f"Part {n}", items, f"{n}. {TEXT}", "") for n in range(8)]
    pages.append(frame.format("Tea", items, "All parts:", f"<div><ul>{items}</ul></div>"))
    text = site(*pages)[-1].content
    assert text.startswith("# Tea\n\nAll parts:\n\n-   [All about pots]")


def test_title_block_after_the_name_of_the_site_is_the_title() -> None:
    top = "<div id='top'><table><tr><td>Kettle</td></tr></table></div>"
    pages = [
        f"<title>Kettle: Member List</title><body>{top}<div class='header'><div class='title'>"
        f"{name} Member List</div></div><div class='contents'><p>All members of {name}: {TEXT}</p>"
        "</div></body>"
        for name in ("Pot", "Cup", "Lid")
    ]
    pages += [
        f"<title>Kettle: {name}</title><body>{top}<div><p>{name}. {TEXT}</p></div>"
        for name in "abcdef"
    ]
    read = site(*pages)[:3]
    assert [page.title.partition(" ")[0] for page in read] == ["Pot", "Cup", "Lid"]
    assert read[0].content.startswith("# Pot Member List\n\nAll members of Pot")


def test_title_block_after_a_line_of_all_pages_is_the_title() -> None:
    frame = (
        "<title>Kettle</title><body><table><tr><td>All about kettles</td></tr></table>"
        "<div class='header'><div class='title'>{0}.h</div></div>"
        "<div class='contents'><h2>Functions</h2><p>{0}: {1}</p></div></body>"
    )
    page = site(*(frame.format(name, TEXT) for name in NAMES))[2]
    assert page.title == "Spoon.h"
    assert page.content.startswith("# Spoon.h\n\n")


def test_text_of_a_chapter_before_its_section_is_kept() -> None:
    section = "<div class='sect'><div><h2>{0}</h2></div><p>{0}: {1}</p></div>"
    pages = [f"<title>{name}</title>{section.format(name, TEXT * 3)}" for name in NAMES]
    chapter = (
        "<title>Tea</title><div class='chapter'><div><h1>Tea</h1></div><p>Drink it.</p>{}</div>"
    )
    page = site(*pages, chapter.format(section.format("Mug", TEXT * 3)))[-1]
    assert page.content.startswith("# Tea\n\nDrink it.\n\n## Mug\n\nMug: It takes")


def test_pages_of_letters_have_the_shared_title_and_their_letter() -> None:
    frame = "<title>Kettle: Functions</title><body><h3>- {0} -</h3><ul><li>{0}oil() {1}</li></ul>"
    pages = [frame.format(letter, TEXT) for letter in "abcdefgh"]
    assert site(*pages)[1].title.endswith("Functions: b")
    members = [page.replace("Functions", "Members") for page in pages]
    functions = [page.replace("Functions", "Members - Functions") for page in pages]
    assert len({page.title for page in site(*functions, *members)}) == 16


def test_separators_drawn_by_style_sheets_come_from_the_head() -> None:
    html = (
        "<title>Tea.Pot.boil</title><body><main><h1><a href='t'>Tea</a><span class='sep'></span>"
        f"<a href='p'>Pot</a><span class='sep'></span>boil</h1><p>{TEXT}</p></main>"
    )
    assert extract(html, URL).title == "Tea.Pot.boil"
    assert extract("<title> | Guide</title><p>Text of it.</p>", URL).title == "Guide"


def test_introduction_outside_the_content_is_kept() -> None:
    frame = (
        "<title>{0} (tea.Kettle.{0})</title><body><nav><a href='..'>Up</a></nav><header><h1>Module"
        " <code>Kettle.{0}</code></h1><p>{0}. {1}<a href='a'>A</a> <a href='b'>B</a> "
        "<a href='c'>C</a></p><pre>pour {0}</pre></header><div class='content'>"
        "<h2 id='use'>Use</h2><p>{1}</p><h2 id='care'>Care</h2><p>{1}</p></div></body>"
    )
    page = site(*(frame.format(f"P{n}", TEXT * 6) for n in range(10)))[3]
    assert page.content.startswith("# Module `Kettle.P3`\n\nP3. It takes a while")
    assert "```\npour P3\n```" in page.content
    assert page.title == "Module tea.Kettle.P3"


@pytest.mark.parametrize("title", ["My Docs", "", "Overview | My Docs", "Thing {} | My Docs"])
def test_heading_that_some_pages_share_is_their_title(title: str) -> None:
    headings = ["Overview"] * 4 + [f"Topic {n}" for n in range(17)]
    pages = [
        f"<title>{title.format(n)}</title><body><main><h1>{heading}</h1><p>This is a paragraph "
        f"about subject {n}, which says enough to be read.</p></main></body>"
        for n, heading in enumerate(headings)
    ]
    template = SiteTemplate()
    for n, html in enumerate(pages):
        read = extract(html, f"https://h/{n}")
        template.vote(read.ballot, read.texts)
    template.count()
    for n in (0, 3, 9):
        options = {"common": template.common, "alone": False}
        read = extract(pages[n], f"https://h/{n}", template.regions, **options)
        assert (read.title, read.content.split("\n")[0]) == (headings[n], f"# {headings[n]}")


def test_front_page_with_the_title_of_all_heads_is_not_called_after_its_author() -> None:
    head = "<title>Questions about tea</title><body><hr>"
    front = (
        "<h1>Questions about tea</h1><h2>Ann Tea</h2><h1>Contents</h1>"
        "<dl><dt><h2><a href='1'>First part</a></h2></dt><dd><dl>"
        "<dt><h3><a href='1#a'>What is tea?</a></h3></dt>"
        f"<dt><h3><a href='1#b'>What is a cup?</a></h3></dt></dl></dd></dl><p>{TEXT}</p>"
    )
    parts = [f"<h1>Part {n}</h1><p>{TEXT} It is {n}.</p>" for n in range(9)]
    page, *others = site(*(head + body for body in (front, *parts)))
    assert page.title == "Questions about tea"
    assert [other.title for other in others] == [f"Part {n}" for n in range(9)]
    assert "\n    -   **[What is tea?](https://" in page.content
    assert "\n    -   **[What is a cup?](https://" in page.content


def test_a_section_of_references_does_not_separate_the_other_sections() -> None:
    section = '<div class="sect"><h2>{}</h2>{}</div>'
    links = " ".join(f'<a href="{name}.html">{name}</a>' for name in ("cup", "pot", "tray"))
    sections = [("NAME", "<p>tea - brew</p>"), ("DESCRIPTION", PARAGRAPHS), ("SEE ALSO", links)]
    body = "".join(section.format(*parts) for parts in sections)
    html = f"<html><head><title>tea</title></head><body>{body}</body></html>"
    content = extract(html, URL, alone=False).content
    assert [line for line in content.splitlines() if line.startswith("## ")] == [
        f"## {name}" for name, _ in sections
    ]


def test_title_is_what_the_head_names_after_the_product_and_its_version() -> None:
    html = (
        "<title>Kettle{} - Descaling</title><h1>Kettle</h1><h2>Links</h2><p>Home</p>"
        f"<h2>Descaling</h2>{PARAGRAPHS}"
    )
    for version in (" (2.1.0)", " version 2.1-1"):
        assert extract(html.format(version), URL, alone=False).title == "Descaling"
    assert extract(html.format(""), URL, alone=False).title == "Kettle"


def test_only_heading_of_a_page_of_a_site_is_its_title_whatever_its_head_says() -> None:
    frame = (
        "<title>{0} (kitchen.Food.{0})</title><body><header><h1>Module Food.{0}</h1></header>"
        "<div class='content'><p>{0}: {1}</p></div></body>"
    )
    page = site(*(frame.format(name, TEXT * 3) for name in NAMES))[1]
    assert page.content.startswith("# Module Food.Cup\n\nCup: It")


def test_title_below_a_heading_that_leads_to_another_page_is_written_once() -> None:
    html = (
        f"<title>Boil</title><body><div><a href='/'><h2>Kettle</h2></a>\n<h2>Boil</h2><p>{TEXT}</p>"
        "</div></body>"
    )
    page = extract(html, URL, alone=False)
    assert page.title == "Boil"
    assert page.content.startswith("## [Kettle](https://docs.example/)\n\n## Boil\n\nIt takes")
