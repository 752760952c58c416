from __future__ import annotations

from kbkit.export.pages.reading_order import contents_links
from kbkit.export.pages.sections import natural_key, section_tree


def names(section):
    return {inner.label: names(inner) for inner in section.sections}


def test_folders_above_all_documents_are_skipped():
    root = section_tree(f"https://h/en/latest/{part}/{n}" for part in "ab" for n in range(3))
    assert names(root) == {"a": {}, "b": {}}


def test_names_that_differ_in_case_only_have_one_order():
    uris = [f"python:p.{name}{n}" for n in range(10) for name in ("request", "Request")]
    assert section_tree(uris).documents == [
        f"python:p.{name}{n}" for n in range(10) for name in ("Request", "request")
    ]


def test_small_folders_belong_to_their_parents():
    uris = [f"https://h/big/{n}" for n in range(5)] + ["https://h/small/x", "https://h/y"]
    root = section_tree(uris)
    assert names(root) == {"big": {}}
    assert root.documents == ["https://h/small/x", "https://h/y"]


def test_dotted_names_make_sections():
    uris = [f"python:p.{cls}.m{n}" for cls in ("DataFrame", "Series") for n in range(4)]
    root = section_tree([*uris, "python:p.DataFrame", "python:p.read_csv"])
    assert names(root) == {"DataFrame": {}, "Series": {}}
    assert root.documents == ["python:p.DataFrame", "python:p.read_csv"]


def test_every_document_is_in_exactly_one_section():
    uris = [f"https://h/{a}/{b}/{c}/{d}/{e}/x" for a in "12" for b in "123" for c in "12"
            for d in "12" for e in "1234"]  # fmt: skip
    root = section_tree(uris)
    listed = root.documents + [uri for _, section in root.walk() for uri in section.documents]
    assert sorted(listed) == sorted(uris)
    assert root.size == len(uris)


def test_folders_that_lead_to_one_other_are_joined():
    uris = [f"https://h/a/{n}" for n in range(3)] + [f"https://h/b/c/d/{n}" for n in range(3)]
    assert names(section_tree(uris)) == {"a": {}, "b / c / d": {}}


def test_an_empty_knowledge_base_has_a_root():
    assert section_tree([]).size == 0


def test_numbers_sort_by_value():
    assert sorted(["c10", "c9", "C1", "c"], key=natural_key) == ["c", "C1", "c9", "c10"]


def test_contents_pages_say_in_which_order_a_site_reads():
    uris = [f"https://h/{part}/{n}.html" for part in ("guide", "api") for n in (1, 2, 3)]
    uris += ["https://h/guide/", "https://h/about.html", "https://h/index.html"]
    root = section_tree(
        uris,
        {
            "https://h/index.html": ["https://h/guide", "https://h/api/1.html"],
            "https://h/guide/": ["https://h/guide/3.html", "https://h/guide/1.html"],
        },
    )
    assert [section.label for section in root.sections] == ["guide", "api"]
    guide, api = (section.documents for section in root.sections)
    assert guide == [f"https://h/guide/{name}" for name in ("", "3.html", "1.html", "2.html")]
    assert api == [f"https://h/api/{n}.html" for n in (1, 2, 3)]
    assert root.documents == ["https://h/index.html", "https://h/about.html"]


def test_only_contents_pages_are_read_for_their_links():
    text = "[b](b.html#x) and ![a](<https://h/a b.png>) [b](./b.html) [up](../) [bad](http://[)"
    assert contents_links("https://h/guide/page.html", text) == ()
    linked = ("https://h/guide/b.html", "https://h/a b.png", "https://h")
    assert contents_links("https://h/guide/", text) == linked
