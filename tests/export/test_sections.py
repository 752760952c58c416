from itertools import product

from kbkit.export.pages.contents import ContentsLink, contents_links
from kbkit.export.pages.sections import TreeSection, natural_key, section_tree
from kbkit.models.documents import Crumb, Navigation


def names(section):
    return {inner.label: names(inner) for inner in section.sections}


def shape(section):
    """Return names of documents and, for sections, their label and items."""
    return [
        item.rpartition("/")[2] if isinstance(item, str) else (item.label, shape(item))
        for item in section.items
    ]


def listed(*addresses, under=()):
    """Return links of a contents page below these headings."""
    return [ContentsLink(address, tuple((name, "") for name in under)) for address in addresses]


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


def test_page_named_like_a_folder_introduces_it():
    uris = [f"python:p.{cls}.m{n}" for cls in ("DataFrame", "Series") for n in range(4)]
    root = section_tree([*uris, "python:p.DataFrame", "python:p.read_csv", "python:p"])
    assert names(root) == {"DataFrame": {}, "Series": {}}
    assert root.documents == ["python:p", "python:p.read_csv"]
    assert [section.page for section in root.sections] == ["python:p.DataFrame", ""]
    assert [section.size for section in root.sections] == [5, 4]


def test_class_named_index_introduces_nothing():
    uris = ["https://h/a", "python:p", "python:p.Index", "python:p.Index.get", "python:p.other"]
    root = section_tree([*uris, "python:p.read"])
    assert [section.page for section in root.sections] == ["python:p"]
    assert root.sections[0].sections[0].page == "python:p.Index"


def test_every_document_is_in_exactly_one_section():
    uris = [f"https://h/{'/'.join(path)}/x" for path in product("12", "123", "12", "12", "1234")]
    root = section_tree(uris)
    assert sorted(root.reading()) == sorted(uris)
    assert root.size == len(uris)


def test_folders_with_one_subfolder_are_joined():
    uris = [f"https://h/a/{n}" for n in range(3)] + [f"https://h/b/c/d/{n}" for n in range(3)]
    assert names(section_tree(uris)) == {"a": {}, "b / c / d": {}}


def test_very_deep_addresses_are_handled():
    deep = [f"https://h/{'d/' * 2_000}{n}" for n in range(3)]
    root = section_tree([*deep, "https://h/a"])
    assert sorted(root.reading()) == sorted([*deep, "https://h/a"])


def test_pages_with_a_common_prefix_form_a_section():
    flat = [f"https://h/{name}.html" for name in ("lang_a", "lang_a-b", "lang_c", "zip", "zip_x")]
    root = section_tree([*flat, "https://h/lang.html", "https://h/about.html"])
    (lang,) = root.sections
    assert lang.page == "https://h/lang.html"
    assert lang.documents == [f"https://h/lang_{name}.html" for name in ("a-b", "a", "c")]
    assert root.documents[-2:] == ["https://h/zip.html", "https://h/zip_x.html"]
    functions = [f"python:p.read{name}" for name in ("", "_csv", "_xml", "_sql")]
    assert not section_tree(functions).sections


def test_contents_pages_override_name_prefixes():
    uris = [f"https://h/{name}.html" for name in ("index", "do", "do_a", "do_b", "do_c", "x", "y")]
    links = listed(*(f"https://h/{name}.html" for name in ("do_a", "x", "y")), under=("Part",))
    root = section_tree(uris, {uris[0]: links})
    parts = {section.label: section.documents for section in root.sections}
    assert parts["Part"] == [f"https://h/{name}.html" for name in ("do_a", "x", "y")]


def test_empty_knowledge_base_has_a_root():
    assert section_tree([]).size == 0


def test_numbers_sort_by_value():
    assert sorted(["c10", "c9", "C1", "c"], key=natural_key) == ["c", "C1", "c9", "c10"]


def test_contents_pages_set_the_reading_order():
    uris = [f"https://h/{part}/{n}.html" for part in ("guide", "api") for n in (1, 2, 3)]
    uris += ["https://h/guide/", "https://h/about.html", "https://h/index.html"]
    root = section_tree(
        uris,
        {
            "https://h/index.html": listed("https://h/guide", "https://h/api/1.html"),
            "https://h/guide/": listed("https://h/guide/3.html", "https://h/guide/1.html"),
        },
        labels={"https://h/guide/": "The guide"},
    )
    guide, api = root.sections
    assert (guide.label, guide.page, api.label) == ("The guide", "https://h/guide/", "api")
    assert guide.documents == [f"https://h/guide/{n}.html" for n in (3, 1, 2)]
    assert api.documents == [f"https://h/api/{n}.html" for n in (1, 2, 3)]
    assert root.items == ["https://h/index.html", guide, api, "https://h/about.html"]


def test_headings_of_contents_pages_become_sections():
    uris = [f"https://h/{name}" for name in ("index.html", "a", "b", "c", "d", "how/x", "how/y")]
    contents = listed("https://h/c", "https://h/a", "https://h/how/y", under=("Guides",))
    root = section_tree(uris, {"https://h/index.html": contents})
    assert shape(root) == ["index.html", ("Guides", ["c", "a", "y"]), "b", "d", "x"]


def test_section_with_its_own_contents_page_is_not_split_from_above():
    uris = [f"https://h/how/{name}" for name in ("index.html", "a", "b", "c")]
    uris += ["https://h/index.html", "https://h/z"]
    contents = listed("https://h/how/a", "https://h/how/b", "https://h/how/c", under=("Parts",))
    root = section_tree(uris, {"https://h/index.html": contents}, labels={uris[0]: "How"})
    assert shape(root) == ["index.html", ("How", ["a", "b", "c"]), "z"]


def test_breadcrumbs_set_sections_and_next_links_the_order():
    site = "https://h/docs/"
    home, guide = Crumb("Home", f"{site}index.html"), Crumb("Guide", f"{site}guide.html")
    out = Crumb("Company", "https://company.example/")
    more = (guide, Crumb("More"))
    places = {
        f"{site}{name}.html": Navigation((out, home, *crumbs), f"{site}{following}.html")
        for name, following, crumbs in [
            ("guide", "z", ()),
            ("z", "a", (guide,)),
            ("a", "m", more),
            ("m", "index", more),
        ]
    }
    uris = [f"{site}index.html", f"{site}b.html", *places]
    root = section_tree(uris, {}, places, {f"{site}guide.html": "The guide"})
    assert shape(root) == ["index.html", ("The guide", ["z.html", "a.html", "m.html"]), "b.html"]
    further = {f"{site}{n}.html": Navigation((home, *more)) for n in "pq"}
    root = section_tree([*uris, *further], {}, {**places, **further}, {})
    assert [names(each) for each in root.sections] == [{"More": {}}]


def test_pages_with_empty_breadcrumbs_stay_on_top():
    uris = [f"https://h/{name}" for name in ("index.html", "a", "b", "c", "d")]
    contents = {uris[0]: listed(*uris[1:4], under=("Where to go",))}
    places = {uri: Navigation(()) for uri in uris}
    assert shape(section_tree(uris, contents, places)) == ["index.html", "a", "b", "c", "d"]
    assert len(section_tree(uris, contents).sections) == 1


def test_breadcrumbs_of_several_sources_start_at_their_front_page():
    site = "https://h/en/"
    front = Crumb("Home", f"{site}index.html")
    places = {
        f"{site}index.html": Navigation(()),
        f"{site}a": Navigation(()),
        f"{site}b": Navigation((front, Crumb("Part"))),
        f"{site}deep/c": Navigation((Crumb("Part"),)),
        f"{site}deep/d": Navigation((Crumb("Part"),)),
        f"{site}e": Navigation((front,)),
    }
    uris = [*places, *(f"python:p.f{n}" for n in range(3))]
    root = section_tree(uris, {}, places, {front.uri: "The site"})
    assert shape(root) == [
        ("The site", ["a", ("Part", ["b", "c", "d"]), "e"]),
        ("p", ["python:p.f0", "python:p.f1", "python:p.f2"]),
    ]


def test_broken_chain_of_next_links_stays_together():
    uris = [f"https://h/{name}" for name in ("index.html", "a1", "a2", "n0", "n1")]
    places = {
        "https://h/n0": Navigation(None, "https://h/n1"),
        "https://h/n1": Navigation(None, "https://h/missing"),
        "https://h/a1": Navigation(None, "https://h/a2"),
    }
    contents = {uris[0]: listed("https://h/n1", "https://h/a1", "https://h/n0")}
    assert shape(section_tree(uris, contents, places)) == ["index.html", "n0", "n1", "a1", "a2"]


def test_circular_breadcrumbs_lose_no_page():
    uris = [f"https://h/{name}" for name in "abcd"]
    turned = {uri: Navigation((Crumb("x", uris[n - 1]),)) for n, uri in enumerate(uris)}
    root = section_tree(uris, {}, {**turned, uris[3]: Navigation((Crumb("x", uris[3]),))})
    assert sorted(root.reading()) == uris


def test_navigation_metadata_is_bounded():
    for odd in (7, "x", [["a"]], [[1, 2]], [["a", "b", "c"]], None):
        assert not Navigation.of({"breadcrumbs": odd, "next": 3})
    many = [[f"t{n}\u202e\n{'x' * 999}", "u" * 5_000] for n in range(99)]
    navigation = Navigation.of({"breadcrumbs": [*many, [" ", "u"]], "next": "https://h/\n"})
    assert navigation.next == ""
    assert len(navigation.breadcrumbs) == 12
    assert all(len(crumb.title) <= 200 and not crumb.uri for crumb in navigation.breadcrumbs)
    assert Navigation.of(navigation.to_metadata()) == navigation


CONTENTS = """# H
[b](b.html#x) and ![a](<https://h/a b.png>) [b](./b.html) [up](../) [bad](http://[)

## Guide

- [One](one.html) about [two](two.html)
    - [Two](two.html)
    - Group
        - **[Three](three.html)**
-   -   [Six](six.html)

```
- [no](no.html)
```

## **Ref** {#ref}

1. [Five](five.html#x)
"""


def test_links_of_contents_pages_only_are_read():
    assert contents_links("https://h/guide/page.html", CONTENTS) == ()
    found = contents_links("https://h/guide/", CONTENTS)
    assert [link.address for link in found] == [
        *("https://h/guide/b.html", "https://h/a b.png", "https://h"),
        *(f"https://h/guide/{name}.html" for name in ("one", "two", "three", "six", "five")),
    ]
    one = ("One", "https://h/guide/one.html")
    parents = {link.address.rpartition("/")[2]: link.parents for link in found if link.parents}
    assert parents == {
        "one.html": (("Guide", ""),),
        "two.html": (("Guide", ""), one),
        "three.html": (("Guide", ""), one, ("Group", "")),
        "six.html": (("Guide", ""),),
        "five.html": (("Ref", ""),),
    }


def test_section_names_lose_anchors_and_arrows():
    text = "- \u25ba Tools {#sh_mark_6}\n    - [One](one.html)\n\n"
    text += "## \u25bc **Lists** {#l}\n\n- [Two](two.html)"
    parents = [link.parents for link in contents_links("https://h/docs.html", text)]
    assert parents == [(("Tools", ""),), (("Lists", ""),)]


def test_section_size_includes_its_page():
    assert TreeSection((), page="a", items=["b", TreeSection((), page="c", items=["d"])]).size == 4


def test_heading_above_nearly_all_pages_is_no_section():
    front = "# Tool\n\nWords.\n\n## Features\n\n- quick\n\n## {}\n\n{}"
    pages = "".join(f"- [Page {n}](page{n}.html)\n" for n in range(9))
    found = contents_links("https://h/tool/index.html", front.format("Notes", pages))
    assert {link.parents for link in found} == {()}
    halves = pages.replace("- [Page 5]", "\n## More\n\n- [Page 5]")
    found = contents_links("https://h/tool/index.html", front.format("Notes", halves))
    assert {link.parents for link in found} == {(("Notes", ""),), (("More", ""),)}


def test_indexes_of_sphinx_come_last():
    uris = [f"https://h/{name}.html" for name in ("genindex", "index", "search", "tour", "zoo")]
    order = ["index", "tour", "zoo", "genindex", "search"]
    assert shape(section_tree(uris)) == [f"{name}.html" for name in order]
    assert shape(section_tree(uris[1:]))[1] == "search.html", "an ordinary page of that name"
