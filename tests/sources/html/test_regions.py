"""Which part of a page is content: pages of sites, and pages on their own."""

from __future__ import annotations

import pytest

from kbkit.sources.html.extract import ExtractedPage, extract
from kbkit.sources.html.fidelity import KINDS, Fidelity, recurring, survey
from kbkit.sources.html.regions import SiteTemplate
from kbkit.sources.html.site_extractor import SiteExtractor
from tests.sources.html.generated_pages import PAGES

URL = "https://docs.example/p.html"
TEXT = "It takes a while until the water boils, and a while longer until the tea is ready. "


def site(*pages: str) -> list[ExtractedPage]:
    """Pages as they are read where they are a site."""
    reader = SiteExtractor(processes=1)
    for place, html in enumerate(pages):
        reader.submit(place, f"https://docs.example/p{place or ''}.html", html.encode(), "")
    found: dict[int, ExtractedPage] = {}
    while reader.pending:
        if not reader.busy:
            reader.settle()
        reading = reader.poll(1)
        if reading is not None and reading.final:
            found[reading.key] = reading.page
    return [found[place] for place in range(len(pages))]


@pytest.mark.parametrize(
    "name",
    [
        "articles that are manuals",
        "a title block beside the content",
        "a caption that names the page",
        "content that is called related",
        "steps to the pages around",
        "links to the source",
        "the foot of every page",
        "a menu of the site",
    ],
)
def test_the_content_of_a_generator_s_page(name: str) -> None:
    page = PAGES[name]
    bodies = [f"<title>Manual</title><body>{body}</body>" for body in (page.html, *page.others)]
    template = recurring([survey(body) for body in bodies])
    measured = Fidelity()
    content = site(*bodies)[0].content
    assert measured.add(bodies[0], content, url=URL, template=template) is not None
    lost = {kind: measured.lost[kind] for kind in KINDS}
    assert {kind: things for kind, things in lost.items() if things} == {}, content


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
def test_a_page_of_a_site_is_an_article_where_it_says_or_shows_so(head: str, foot: str) -> None:
    text = "".join(f"<p>{number}. {TEXT}</p>" for number in range(8))
    html = (
        f"<html><head><title>Tea</title>{head}</head><body><article><h1>Tea</h1>{text}</article>"
        f"{foot}</body></html>"
    )
    assert extract(html, URL, alone=False).article
    # on its own a page may be an article that says nothing of itself
    silent = html.replace(head, "").replace(foot, "") if head or foot else html
    assert extract(silent, URL).article
    assert not extract(silent, URL, alone=False).article


def test_who_wrote_a_manual_in_a_list_of_fields_makes_no_article_of_it() -> None:
    text = "".join(f"<p>{number}. {TEXT}</p>" for number in range(8))
    fields = '<dl><dt class="author">Author:</dt><dd class="author">Ann</dd></dl>'
    html = f"<title>Tea</title><body><article><h1>Tea</h1>{fields}{text}</article></body>"
    assert not extract(html, URL, alone=False).article
    byline = html.replace("<dl>", '<p class="author">Ann</p><dl>')
    assert extract(byline, URL, alone=False).article


def test_what_says_that_it_is_an_article_is_none_if_its_sections_would_be_lost() -> None:
    body = PAGES["articles that are manuals"].html
    head = "<title>Kettle</title><meta property='og:type' content='article'>"
    page = extract(f"<html><head>{head}</head><body>{body}</body></html>", URL, alone=False)
    assert not page.article
    assert "## Safety\n\nHot.\n\n-   Keep away.\n-   Unplug.\n" in page.content


def test_articles_with_code_keep_it_or_are_read_whole() -> None:
    head = '<meta property="og:type" content="article">'
    text = "".join(f"<p>{number}. {TEXT}</p>" for number in range(8))
    code = "<pre>kettle --boil\n    --minutes 3</pre>"
    page = extract(f"{head}<article><h1>Tea</h1>{text}{code}{text}</article>", URL)
    assert "```\nkettle --boil\n    --minutes 3\n```" in page.content
    bare = extract(f"<article><h1>Tea</h1>{text}{code}{text}</article>", URL)
    assert not bare.article


def test_titles_that_repeat_give_way_to_what_names_the_page() -> None:
    frame = (
        "<html><head><title>The Kitchen Library</title></head><body><div class='top'>"
        "<div class='summary'><a href='#m'>Members of it</a> <a href='/all'>All members</a></div>"
        "<div class='headertitle'><div class='title'>{0} Reference"
        "<div class='in'><a href='/k'>Module</a></div></div></div></div>"
        "<div class='contents'><p>{1} {0}.</p><h2>Members</h2><p>{0} of {2}</p></div></body></html>"
    )
    names = ("Kettle", "Cup", "Spoon", "Saucer", "Pot", "Leaf", "Sieve", "Timer", "Tray")
    pages = site(*(frame.format(name, TEXT * 2, name[::-1]) for name in names))
    assert [page.title for page in pages] == [f"{name} Reference" for name in names]
    assert pages[0].content.startswith("# Kettle Reference\n\n[Module](https://docs.example/k)\n")
    assert "All members" not in pages[0].content


def test_the_edition_of_a_manual_is_no_part_of_a_page_s_title() -> None:
    head = "<title>Steeping (The Tea Manual, version 7)</title>"
    page = extract(f"<html><head>{head}</head><body><p>{TEXT}</p></body></html>", URL)
    assert page.title == "Steeping"
    signal = extract(f"<title>brew(1)</title><body><p>{TEXT}</p></body>", URL)
    assert signal.title == "brew(1)"


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
    ],
)
def test_a_title_says_the_folder_of_a_file_and_the_letter_of_an_index(
    head: str, heading: str, title: str
) -> None:
    page = extract(f"<title>{head}</title><body><div>{heading}<p>{TEXT * 2}</p></div></body>", URL)
    assert page.title == title


@pytest.mark.parametrize("head", ["<title>{}(3)</title>", "<title></title>"])
def test_pages_whose_first_heading_is_on_all_are_called_as_their_head_or_that_text_says(
    head: str,
) -> None:
    """Manual pages, all of whose headings are sections, and differ a bit."""
    parts = ("Library", "Synopsis", "Errors", "Notes")
    pages = [
        f"<html><head>{head.format(name)}</head><body><h1>NAME</h1><p>{name} - a tool</p>"
        f"<h1>{parts[place % 4]}</h1><p>{name}: {TEXT * 2}</p></body></html>"
        for place, name in enumerate(("boil", "brew", "pour", "stir", "sip", "wash", "dry", "sort"))
    ]
    found = site(*pages)
    named = "boil(3)" if "{}" in head else "boil - a tool"
    assert found[0].title == named
    assert len({page.title for page in found}) == len(pages)
    assert "# NAME\n\nboil - a tool\n\n# Library\n" in found[0].content


def test_a_heading_that_each_menu_has_names_its_page_once() -> None:
    names = ("Kettle", "Cup", "Spoon", "Saucer", "Pot", "Leaf", "Sieve", "Timer", "Tray")
    menu = "".join(f"<li><a href='/{name}'>{name}</a></li>" for name in names)
    pages = [
        f"<html><head><title>{name} | Kitchen</title></head><body><ul>{menu}</ul><main>"
        f"<h1 id='top'>{name}</h1><p>{name}: {TEXT * 2}</p></main></body></html>"
        for name in names
    ]
    for name, page in zip(names, site(*pages), strict=True):
        assert page.content.startswith(f"# {name} {{#top}}\n\n{name}: It takes")


def test_the_name_of_the_site_is_what_titles_have_in_common() -> None:
    names = ["Members", "Members - Functions", "Members - Types", "Files", "Tea - green"] + [
        f"Part {number}" for number in range(6)
    ]
    frame = "<title>{0}{1}{2}</title><body><div><p>{1}: {3}</p><ul><li>{1}</li></ul></div></body>"
    for begin, end in (("Lib: ", ""), ("", " (Lib, all of it)"), ("", " — Lib")):
        pages = site(*(frame.format(begin, name, end, TEXT * 2) for name in names))
        assert [page.title for page in pages] == names


def test_a_part_that_the_head_of_a_page_tells_is_said_in_its_title() -> None:
    frame = "<title>{0} (Lib)</title><body><main><h1>{1}</h1><p>{1} {2}</p></main></body>"
    names = [(f"Part {number}", f"Part {number}") for number in range(8)]
    names += [("Tea", "Tea"), ("Tea (Index)", "Tea")]
    pages = site(*(frame.format(*name, TEXT * 2) for name in names))
    assert [page.title for page in pages] == [name for name, _ in names]


def test_the_heading_and_the_notes_of_a_page_that_is_mostly_a_list_are_content() -> None:
    def page(number: int) -> str:
        terms = "".join(f"<dt>-{letter}</dt><dd>{TEXT}</dd>" for letter in "abcdefgh")
        return (
            f"<title>Options {number}</title><body><div class='section' id='s{number}'>"
            f"<div class='header'><p>Next: <a href='n{number}' rel='next'>Cups</a>, Up: "
            f"<a href='u{number}' rel='up'>Tea</a></p></div><h3>{number} Options</h3>"
            f"<p>All of {number}.</p><dl>{terms}</dl></div><div class='notes'><h4>Notes</h4>"
            f"<p>Note {number}.</p></div><hr><p>Next: <a href='n{number}'>Cups</a>, Up: "
            f"<a href='u{number}'>Tea</a> [<a href='c'>Contents</a>]</p></body>"
        )

    for number, found in enumerate(site(*map(page, range(9)))):
        assert f"### {number} Options" in found.content
        assert f"All of {number}." in found.content
        assert f"#### Notes\n\nNote {number}." in found.content
        assert "Cups" not in found.content


def test_one_link_to_a_neighbour_is_a_link_like_others() -> None:
    steps = "<p><a href='n' rel='next'>Cups</a> <a href='u' rel='up'>Tea</a></p>"
    listed = "<ul><li><a href='n'>Cups</a></li><li><a href='x'>Spoons</a></li></ul>"
    page = f"<body>{steps}<main><h1>Pots</h1><p>{TEXT}</p>{listed}</main></body>"
    assert "-   [Cups](https://docs.example/n)\n-   [Spoons]" in extract(page, URL).content


def test_the_caption_that_says_what_the_page_is_called_leads_it() -> None:
    info = "<table><tr><th>Stability</th><td>stable</td></tr></table>"
    caption = "<p class='caption'>Tea.Pot</p>"
    text = f"<h1>Pots</h1><p>{TEXT}</p>"
    frame = "<head><title>{}</title></head><body><main>{}</main></body>"
    page = extract(frame.format("Tea.Pot", info + caption + text), URL, alone=False)
    assert page.title == "Tea.Pot"
    assert page.content.startswith("# Tea.Pot\n\n|  |  |\n")
    other = extract(frame.format("Tea.Pot.Lid", info + caption + text), URL, alone=False)
    assert other.title == "Pots"


def test_a_heading_of_the_content_keeps_its_level_whatever_its_class() -> None:
    page = f"<title>Pots</title><body><main><h2 class='title'>Pots</h2><p>{TEXT}</p></main></body>"
    assert "## Pots" in extract(page, URL, alone=False).content.splitlines()


def test_a_trail_that_leads_to_the_page_is_no_content() -> None:
    trail = "<ul><li>Manual</li><li><a href='/c'>Cups</a></li><li>Tea &amp; Cups</li></ul>"
    parts = "<ul><li><a href='/p'>Pots</a></li><li>Tea &amp; Cups</li></ul>"
    page = f"<main>{trail}<h1>Tea &amp; Cups</h1><p>{TEXT}</p>{parts}</main>"
    content = extract(page, URL, alone=False).content
    assert content.startswith("# Tea & Cups\n")
    assert content.endswith("-   [Pots](https://docs.example/p)\n-   Tea & Cups\n")


def test_a_row_of_links_that_stands_on_a_page_twice_is_no_content() -> None:
    def row(*names: str) -> str:
        cells = "".join(f"<td>[<a href='/{name}'>{name}</a>]</td>" for name in names)
        return f"<table><tr>{cells}<td></td></tr></table>"

    steps = row("Up", "Top", "Contents")
    page = f"<main>{steps}<h1>Tea</h1><p>{TEXT}</p>{row('Pots', 'Cups', 'Lids')}{steps}</main>"
    content = extract(page, URL, alone=False).content
    assert "Contents" not in content
    assert "Lids" in content


def test_the_foot_of_a_site_goes_and_that_of_a_quotation_stays() -> None:
    quote = "<blockquote><p>Tea first.</p><footer><a href='/a'>A drinker</a></footer></blockquote>"
    foot = "<footer>Made by <a href='/t'>a tool</a> on Sunday</footer>"
    page = f"<body><div><h1>Tea</h1><p>{TEXT}</p>{quote}</div>{foot}</body>"
    content = extract(page, URL, alone=False).content
    assert "A drinker" in content
    assert "a tool" not in content


def test_notes_that_are_not_to_be_printed_go_and_texts_stay() -> None:
    notes = f"<div class='noprint'>From a wiki</div><div class='noprint'><p>{TEXT}</p></div>"
    content = extract(f"<main><h1>Tea</h1>{notes}</main>", URL, alone=False).content
    assert "From a wiki" not in content
    assert TEXT.strip() in content


def test_what_unfolds_something_is_no_content() -> None:
    head = "<h2>Parts <small><a href='#' class='a-toggle'>collapse</a></small></h2>"
    head += "<h2>In <a href='#' class='fn'>Lids</a></h2>"
    content = extract(f"<main><h1>Tea</h1>{head}<p>{TEXT}</p></main>", URL, alone=False).content
    assert "## Parts\n\n## In Lids" in content
    tree = "<dd><ul><li>Pot</li></ul><a href='#'>show all</a></dd>"
    text = f"<p>{TEXT}<a href='#'>This page</a></p>"
    page = f"<main><h1>Tea</h1><dl><dt>Is a</dt>{tree}</dl>{text}</main>"
    content = extract(page, URL, alone=False).content
    assert "show all" not in content
    assert "This page" in content


def test_links_over_the_menus_are_no_content() -> None:
    jump = "<a class='wiki-jump-link' href='#menu'>Jump to the menu</a>"
    kept = "<a class='jumper' href='#pots'>pots below</a>"
    page = f"<main><h1>Tea</h1>{jump}<p>{TEXT} See {kept}.</p><h2 id='pots'>Pots</h2></main>"
    content = extract(page, URL, alone=False).content
    assert "Jump" not in content
    assert "[pots below](https://docs.example/p.html#pots)" in content


def test_names_of_navigation_remove_only_what_is_navigation() -> None:
    text = (
        f"<main><h1>Tea</h1><div class='menu'><p>{TEXT}</p></div>"
        f"<div class='toc'><p>{TEXT}<a href='/x'>more</a></p></div>"
        "<div class='pagination'><a href='/1'>Page one</a> <a href='/2'>Page two</a></div>"
        "<div class='sidebar'><ul><li><a href='/a'>Apples</a></li></ul></div>"
        "<span class='lineno'>17</span></main>"
    )
    content = extract(text, URL, alone=False).content
    assert content.count(TEXT.strip()) == 2
    assert not any(gone in content for gone in ("Page one", "Apples", "17"))


def test_steps_to_neighbours_go_and_links_in_text_stay() -> None:
    html = (
        "<body><div class='nav-panel'><p>Next: <a href='n' accesskey='n' rel='next'>Cups</a>, "
        "Previous: <a href='p' accesskey='p' rel='prev'>Leaves</a> [<a href='c'>Contents</a>]"
        "</p></div><h2>Water</h2>"
        f"<p>{TEXT}<a href='n' rel='next'>The next chapter</a> tells what to drink from."
        f" {TEXT}</p>"
    )
    content = extract(html, URL, alone=False).content
    assert "Contents" not in content
    assert "Leaves" not in content
    assert "[The next chapter](https://docs.example/n) tells" in content


def test_texts_that_all_pages_begin_or_end_with_go_and_those_amid_stay() -> None:
    frame = (
        "<body><div id='all'><div class='lead'>Tea house, open daily</div><h1>{0}</h1>"
        "<p>{1} {0}.</p><p>Ask the waiter.</p><p>{0}? {1}</p><p>Printed on tea leaves</p></div>"
    )
    names = ("Kettle", "Cup", "Spoon", "Saucer", "Pot", "Leaf", "Sieve", "Timer", "Tray")
    for page, name in zip(site(*(frame.format(n, TEXT) for n in names)), names, strict=True):
        assert page.content.startswith(f"# {name} ")
        assert "Ask the waiter." in page.content
        assert "Tea house" not in page.content
        assert "Printed" not in page.content


def test_a_page_inside_a_header_that_is_never_closed_is_read() -> None:
    text = "".join(f"<p>{number}. {TEXT}</p>" for number in range(8))
    html = f"<body><header><h1>Tea</h1>{text}<script src='x.js'></script></body>"
    assert extract(html, URL, alone=False).content.count(TEXT.strip()) == 8


def test_the_source_of_a_method_that_a_button_unfolds_is_no_content() -> None:
    html = (
        f"<main><h1>Kettle</h1><h2>boil()</h2><p>{TEXT}</p><div class='method-source-code'>"
        "<pre>def boil\n  heat\nend</pre></div><pre>kettle.boil</pre></main>"
    )
    content = extract(html, URL, alone=False).content
    assert "heat" not in content
    assert "```\nkettle.boil\n```" in content
    measured = Fidelity()
    measured.add(html, content, url=URL)
    assert not any(measured.lost[kind] for kind in KINDS)


def test_a_last_section_that_says_the_same_on_all_pages_stays() -> None:
    frame = (
        "<body><div id='all'><h1>{0}</h1><p>{1} {0}.</p><div><h2>AUTHORS</h2><div><p>Ann wrote it."
        "</p></div></div></div><div>Printed on tea leaves</div></body>"
    )
    names = ("Kettle", "Cup", "Spoon", "Saucer", "Pot", "Leaf", "Sieve", "Timer", "Tray")
    for page in site(*(frame.format(name, TEXT) for name in names)):
        assert page.content.endswith("## AUTHORS\n\nAnn wrote it.\n")


def test_links_to_the_translations_of_a_page_go() -> None:
    link = '<a href="/{0}/p" hreflang="{0}" rel="alternate">{0}</a>'
    links = " | ".join(map(link.format, "abcdef"))
    lines = f"<div><p><span>Available in: </span>{links}</p></div>"
    text = f"<p>{TEXT * 3} <a hreflang='de' href='/de'>In German.</a></p>"
    body = f"{lines}<h1>Kettle</h1>{text}{lines}"
    content = extract(f"<html><body><main>{body}</main></body></html>", URL).content
    assert content.startswith("# Kettle")
    assert "Available" not in content
    assert "In German" in content


def test_a_list_that_the_menu_has_too_is_the_content_of_its_page() -> None:
    names = ("pots", "cups", "tea")
    items = "".join(f'<li><a href="/{one}">All about {one}</a></li>' for one in names)
    frame = (
        "<title>{0} - Tea</title><body><div class='page'><aside><ul>{1}</ul></aside><main><div>"
        "<article role='main'><h1>{0}</h1><p>{2}</p>{3}</article></div></main></div></body>"
    )
    pages = [frame.format(f"Part {n}", items, f"{n}. {TEXT}", "") for n in range(8)]
    pages.append(frame.format("Tea", items, "All parts:", f"<div><ul>{items}</ul></div>"))
    content = site(*pages)[-1].content
    assert content.startswith("# Tea\n\nAll parts:\n\n-   [All about pots]")


def test_a_title_block_behind_the_name_of_the_site_names_the_page() -> None:
    frame = (
        "<title>Kettle: Member List</title><body>{2}<div class='header'>"
        "<div class='title'>{0} Member List</div></div><div class='contents'>"
        "<p>All members of {0}: {1}</p></div></body>"
    )
    top = "<div id='top'><table><tr><td>Kettle</td></tr></table></div>"
    pages = [frame.format(name, TEXT, top) for name in ("Pot", "Cup", "Lid")]
    pages += [
        f"<title>Kettle: {name}</title><body>{top}<div><p>{name}. {TEXT}</p></div>"
        for name in "abcdef"
    ]
    found = site(*pages)[:3]
    assert [page.title.partition(" ")[0] for page in found] == ["Pot", "Cup", "Lid"]
    assert found[0].content.startswith("# Pot Member List\n\nAll members of Pot")


def test_a_page_of_one_letter_is_called_what_all_its_siblings_are_with_the_letter() -> None:
    frame = "<title>Kettle: Functions</title><body><h3>- {0} -</h3><ul><li>{0}oil() {1}</li></ul>"
    pages = [frame.format(letter, TEXT) for letter in "abcdefgh"]
    assert site(*pages)[1].title.endswith("Functions: b")
    frame = frame.replace("Functions", "Members - Functions")
    pages = [frame.format(letter, TEXT) for letter in "abcdefgh"]
    pages += [page.replace(" - Functions", "") for page in pages]
    assert len({page.title for page in site(*pages)}) == 16


def test_signs_that_a_style_sheet_draws_in_a_heading_are_those_of_the_head() -> None:
    html = (
        "<title>Tea.Pot.boil</title><body><main><h1><a href='t'>Tea</a><span class='sep'></span>"
        f"<a href='p'>Pot</a><span class='sep'></span>boil</h1><p>{TEXT}</p></main>"
    )
    assert extract(html, URL).title == "Tea.Pot.boil"
    assert extract("<title> | Guide</title><p>Text of it.</p>", URL).title == "Guide"


def test_what_introduces_the_page_beside_its_content_is_kept_whole() -> None:
    frame = (
        "<title>{0} (tea.Kettle.{0})</title><body><nav><a href='..'>Up</a></nav><header><h1>Module"
        " <code>Kettle.{0}</code></h1><p>{0}. {1}<a href='a'>A</a> <a href='b'>B</a> "
        "<a href='c'>C</a></p><pre>pour {0}</pre></header>"
        "<div class='content'>"
        "<h2 id='use'>Use</h2><p>{1}</p><h2 id='care'>Care</h2><p>{1}</p></div></body>"
    )
    pages = site(*(frame.format(f"P{n}", TEXT * 6) for n in range(10)))
    assert pages[3].content.startswith("# Module `Kettle.P3`\n\nP3. It takes a while")
    assert "```\npour P3\n```" in pages[3].content
    assert pages[3].title == "Module tea.Kettle.P3"


@pytest.mark.parametrize("title", ["My Docs", "", "Overview | My Docs", "Thing {n} | My Docs"])
def test_a_heading_that_some_pages_share_is_their_title(title: str) -> None:
    site = SiteTemplate()
    heads = ["Overview"] * 4 + [f"Topic {n}" for n in range(17)]

    def page(n: int) -> str:
        words = f"<p>This is a paragraph about subject {n}, which says enough to be read.</p>"
        head = title.format(n=n)
        return f"<title>{head}</title><body><main><h1>{heads[n]}</h1>{words}</main></body>"

    for n in range(len(heads)):
        read = extract(page(n), f"https://h/{n}")
        site.vote(read.ballot, read.texts)
    site.count()
    for n in (0, 3, 9):
        read = extract(page(n), f"https://h/{n}", site.regions, common=site.common, alone=False)
        assert (read.title, read.content.split("\n")[0]) == (heads[n], f"# {heads[n]}")
