import json
import re

from kbkit.export.mkdocs.site_pages import MAX_SHOWN, MAX_UNFOLDED, Sidebar


def entry(title, children=(), listing=""):
    item = {"title": title, "path": f"{title}.md"}
    if children:
        item["children"] = list(children)
    return {**item, "list": f"{listing}.md"} if listing else item


def address(path):
    return path.replace(".md", ".html")


def sidebar(*nav, site=None):
    return Sidebar(list(nav), address, site)


def links(items):
    return re.findall(r'href="([^"]*)"', items)


def parts(number, first=0):
    return [entry(f"p{n}") for n in range(first, first + number)]


def test_page_shows_only_its_own_branch():
    inner = entry("inner", parts(3, 10))
    bar = sidebar(entry("index"), entry("a", [*parts(3), inner]), entry("b", parts(3, 20)))
    shown = bar.of("p11.md", "p11.html")
    above = ["index", "a", "p0", "p1", "p2", "inner"]
    assert links(shown) == [f"{name}.html" for name in (*above, "p10", "p11", "p12", "b")]
    assert shown.count("md-nav__link--active") == shown.count("aria-current=page") == 1
    assert shown.count("data-kb=") == 3
    assert shown.count("kb-open") == 2
    assert links(bar.of("nowhere.md", "nowhere.html")) == ["index.html", "a.html", "b.html"]


def test_list_page_unfolds_its_section():
    bar = sidebar(entry("index"), entry("a", parts(3), listing="all-a"))
    assert links(bar.of("all-a.md", "all-a.html"))[2:] == ["p0.html", "p1.html", "p2.html"]
    assert "active" not in bar.of("all-a.md", "all-a.html")


def test_long_sections_show_entries_around_the_page():
    bar = sidebar(entry("index"), entry("a", parts(10_000), listing="all-a"))
    for place in (0, 5_000, 9_999):
        found = links(bar.of(f"p{place}.md", f"p{place}.html"))
        assert f"p{place}.html" in found
        assert len(found) == 2 + MAX_SHOWN + 1
        assert found[-1] == "all-a.html"


def test_sections_are_separate_files():
    evil = "</script><b>\u2028"
    inner = entry("inner", parts(2, 5_000))
    bar = sidebar(entry(evil, [inner, *parts(MAX_UNFOLDED)], listing="all"), *parts(2, 9_000))
    found = dict(bar.files())
    assert len(found) == 2
    ids = [name.removesuffix(".js") for name in found]
    assert set(ids) >= set(re.findall(r"data-kb=(\w+)", bar.of("inner.md", "inner.html")))
    name, rows = json.loads(f"[{found[f'{ids[0]}.js'].decode()[len('kbkitContents(') : -3]}]")
    assert name == ids[0]
    assert rows[0] == ["inner", "inner.html", ids[1]]
    assert rows[1] == ["p0", "p0.html"]
    assert rows[-1] == ["1 more", "all.html"]
    shown = bar.of("inner.md", "inner.html")
    assert "&lt;/script&gt;&lt;b&gt;" in shown
    assert "<b>" not in shown


def test_mounted_part_links_back_to_the_site():
    bar = sidebar(entry("index"), site=("A & B", "index.html"))
    assert "‹ A &amp; B</a>" in bar.of("index.md", "kb/x/index.html")
    assert links(bar.of("index.md", "kb/x/index.html"))[0] == "../../index.html"


def test_sections_are_read_in_place():
    bar = sidebar(entry("index"), entry("a", parts(2)), entry("b"))
    assert list(bar.reading()) == ["index.md", "a.md", "p0.md", "p1.md", "b.md"]


def test_members_do_not_repeat_the_name_of_their_class():
    inner = entry("p.Frame.str", [entry("p.Frame.str.cut"), entry("other")])
    bar = sidebar(entry("p.Frame", [entry("p.Frame.merge"), inner, entry("p.Framed")]))
    shown = bar.of("other.md", "other.html")
    titles = re.findall(r">([^<>]+)</a>", shown)
    assert titles == ["p.Frame", "merge", "str", "cut", "other", "p.Framed"]
