import pytest

from kbkit.export.mkdocs.site_pages import RenderCache
from kbkit.text.markdown.rendering import render

TEXT = "# T {#t}\n\n[in](in.md#a), [out](http://x.example), ![p](p.svg)\n\n```python\nx = 1\n```"
LINKS = {"in.md#a": "in.html#a"}
PICTURES = {"p.svg": "<svg/>"}


def rendered(folder, text=TEXT, links=LINKS, pictures=PICTURES, document=False, path="a.md"):
    """Return a page and whether it came from the cache."""
    pages = RenderCache(folder)
    finders = {"links": links.get, "pictures": pictures.get, "images": {}.get}
    page = pages.render(path, text, finders, document=document)
    pages.close()
    return page, pages.hits == 1


def test_page_is_rendered_once_into_a_folder_that_git_ignores(tmp_path):
    first, cached = rendered(tmp_path / "cache")
    assert not cached
    assert first == render(TEXT, LINKS.get, picture=PICTURES.get)
    assert rendered(tmp_path / "cache") == (first, True)
    assert (tmp_path / "cache" / ".gitignore").read_text() == "*\n"


@pytest.mark.parametrize(
    "other",
    [
        {"text": TEXT + "."},
        {"links": {"in.md#a": "elsewhere.html#a"}},
        {"links": {}},
        {"pictures": {"p.svg": "<svg>2</svg>"}},
        {"document": True},
    ],
)
def test_changed_page_is_rendered_again(tmp_path, other):
    rendered(tmp_path)
    page, cached = rendered(tmp_path, **other)
    assert not cached
    values = {"text": TEXT, "links": LINKS, "pictures": PICTURES, "document": False} | other
    assert page == render(
        values["text"],
        values["links"].get,
        picture=values["pictures"].get,
        document=values["document"],
    )


def test_removed_pages_leave_the_cache(tmp_path):
    rendered(tmp_path, path="a.md")
    rendered(tmp_path, path="b.md")
    assert len(list(tmp_path.glob("*.json"))) == 1


@pytest.mark.parametrize("data", [b"\0 no JSON", b"{}", b"[]"])
def test_damaged_cache_is_rebuilt(tmp_path, data):
    first, _ = rendered(tmp_path)
    (page,) = tmp_path.glob("*.json")
    page.write_bytes(data)
    assert rendered(tmp_path) == (first, False)
    assert rendered(tmp_path) == (first, True)


def test_pages_are_rendered_without_a_cache(tmp_path):
    (tmp_path / "file").write_text("in the way")
    first, _ = rendered(None)
    assert rendered(tmp_path / "file" / "cache") == (first, False)


def test_concurrent_builds_do_not_block(tmp_path):
    one, other = RenderCache(tmp_path), RenderCache(tmp_path)
    for pages in (one, other):
        finders = {"links": LINKS.get, "pictures": PICTURES.get, "images": {}.get}
        pages.render("a.md", TEXT, finders, document=False)
    other.close()
    one.close()
    assert rendered(tmp_path)[1]
