"""Pages that hold an application instead of text, and short pages that are pages nevertheless."""

import pytest

from kbkit.sources.html.extract import NEEDS_BROWSER, extract

SCRIPT = '<script src="app.js"></script>'
SHELLS = {
    "an empty root": f'<div id="root"></div>{SCRIPT}',
    "an empty root of any name": f'<div id="kettle"></div>{SCRIPT}',
    "a root in layers": f'<div id="__next"><div class="page"><div></div></div></div>{SCRIPT}',
    "Swagger UI": f'<div id="swagger-ui"></div>{SCRIPT}',
    "ReDoc": f'<redoc spec-url="api.json"></redoc>{SCRIPT}',
    "docsify": f'<div id="app">Please wait...</div><script>$docsify={{}}</script>{SCRIPT}',
    "an element of its own": '<app-root>Loading…</app-root><script type="module">1</script>',
    "a picture that turns": f'<div id="app"><svg><text>x</text></svg>Loading</div>{SCRIPT}',
    "a menu and a foot around it": (
        f'<header><a href="/">Kettle</a></header><nav>Home Guide Reference</nav><div id="app">'
        f"</div><footer>© 2026 The Kettle authors, all rights reserved.</footer>{SCRIPT}"
    ),
    "a notice": f"<noscript>You need to enable JavaScript to run this app.</noscript>{SCRIPT}",
    "a notice in the root": (
        f'<div id="app"><p>We are sorry but this page does not work without JavaScript enabled.'
        f" Please enable it to continue.</p></div>{SCRIPT}"
    ),
    "a few words beside the root": f'<h1>Kettle API</h1><div id="root"></div>{SCRIPT}',
    "ten words beside the root": f'<p>{"tea " * 10}</p><div id="root"></div>{SCRIPT}',
    "nothing but a script": SCRIPT,
}
PAGES = {
    "eleven words beside a root": f'<p>{"tea " * 11}</p><div id="root"></div>{SCRIPT}',
    "short": f"<h1>Release 1.2</h1><p>Nothing changed.</p>{SCRIPT}",
    "short, with an empty element": f'<p>Nothing changed.</p><div id="modal"></div>{SCRIPT}',
    "nothing but its title": (
        f"<nav><a href='..'>Up</a></nav><header><h1>Module Pot</h1></header><div></div>{SCRIPT}"
    ),
    "short, without scripts": '<p>Nothing changed.</p><div id="root"></div>',
    "rendered in advance": (
        f'<div id="__next"><main><h1>Kettle</h1><p>It boils.</p></main></div>{SCRIPT}'
    ),
    "comments that need JavaScript": (
        '<p>The kettle boils now.</p><div id="disqus_thread"></div>'
        f"<noscript>Please enable JavaScript to view the comments.</noscript>{SCRIPT}"
    ),
    "about loading": f"<main><h1>Loading</h1><p>How kettles are loaded.</p></main>{SCRIPT}",
    "about JavaScript": (
        f"<main><h1>JavaScript</h1><p>JavaScript is a language.</p></main>"
        f'<div id="x"></div>{SCRIPT}'
    ),
    "a root that is empty beside text": (
        f'<main><p>{"A kettle boils water for tea. " * 4}</p></main><div id="root"></div>{SCRIPT}'
    ),
    "data in a script": (
        '<p>Nothing changed.</p><div id="root"></div>'
        '<script type="application/ld+json">{"name": "x"}</script>'
    ),
}


EMPTY = {
    "a menu that a server wrote": (
        '<header><a href="./">Home</a><a href="identifiers.html">Reference</a>'
        f'<a href="source.html">Source</a></header><div class="content"></div>{SCRIPT}'
    ),
    "an empty content of a page with a menu": (
        '<nav><a href="a.html">A</a><a href="b.html">B</a><a href="c.html">C</a></nav>'
        f'<div id="main"><section><h3> </h3></section></div>{SCRIPT}'
    ),
}


def read(body: str):
    return extract(
        f"<html><head><title>Kettle</title></head><body>{body}</body></html>", "https://x.org/"
    )


@pytest.mark.parametrize("name", SHELLS)
def test_application_without_text_needs_a_browser(name):
    page = read(SHELLS[name])
    assert (page.reason, page.content, page.failed) == (NEEDS_BROWSER, "", False)


@pytest.mark.parametrize("name", PAGES)
def test_short_page_is_a_page(name):
    page = read(PAGES[name])
    assert (page.reason, bool(page.content)) == ("", True)


@pytest.mark.parametrize("name", EMPTY)
def test_empty_page_of_a_server_needs_no_browser(name):
    assert read(EMPTY[name]).reason == "no text"


def test_application_that_refreshes_has_its_target():
    body = f'<div id="root"></div>{SCRIPT}'
    html = f'<html><head><meta http-equiv="refresh" content="0; url=/x"></head><body>{body}</body>'
    assert extract(html, "https://x.org/").refresh == "https://x.org/x"


def test_noindex_of_an_application_is_reported():
    html = (
        f'<html><head><meta name="robots" content="noindex"></head><body>{SHELLS["ReDoc"]}</body>'
    )
    assert extract(html, "https://x.org/").reason.startswith("noindex")
