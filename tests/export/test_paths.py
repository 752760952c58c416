import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbkit.export.pages.paths import PART_BYTES, assign_paths, collision_key, safe_name, uri_parts


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("https://docs.python.org/3/library/os.path.html", "docs.python.org/3/library/os.path"),
        ("http://127.0.0.1:8000/guide/", "127.0.0.1-8000/guide/index"),
        ("https://example.org", "example.org/index"),
        ("https://example.org/a?page=2", "example.org/a-page-2"),
        ("python:pandas.DataFrame.merge", "pandas/DataFrame/merge"),
        ("file:///notes/übung.md", "file/notes/übung"),
        ("text:my note", "text/my-note"),
        ("notes/a.md", "files/notes/a"),
        ("https://user:secret@example.org/x", "example.org/x"),
        ("https://example.org/%2e%2e/%2e%2e/etc/passwd", None),
        ("http://[broken/x", None),
    ],
)
def test_file_names_mirror_uris(uri, path):
    chosen = assign_paths([uri], "pages")[uri]
    if path is not None:
        assert chosen == f"pages/{path}.md"
    assert ".." not in chosen.split("/")


@given(st.text())
def test_any_text_becomes_a_portable_name(text):
    name = safe_name(text)
    assert name
    assert not name.startswith((".", "-"))
    assert not name.endswith((".", " "))
    assert not set(name) & set('<>:"/\\|?*\x00')
    assert len(name.encode()) <= PART_BYTES


@pytest.mark.parametrize("name", ["con", "NUL", "com1", "aux.md", "LPT9.x"])
def test_device_names_of_windows_are_avoided(name):
    assert safe_name(name).startswith("_")


@given(st.lists(st.text(min_size=1, max_size=300), max_size=20, unique=True))
def test_no_two_uris_share_a_file(uris):
    paths = assign_paths(uris, "pages")
    assert set(paths) == set(uris)
    assert len({collision_key(path.removesuffix(".md")) for path in paths.values()}) == len(uris)
    assert all(len(path.encode()) <= 200 and path.startswith("pages/") for path in paths.values())


@pytest.mark.parametrize("names", [("Readme.html", "README.html"), ("library.html", "library/")])
def test_similar_names_get_different_files(names):
    paths = assign_paths([f"https://h/{name}" for name in names], "pages").values()
    assert len({path.casefold() for path in paths}) == 2
    assert len({collision_key(path.removesuffix(".md")) for path in paths}) == 2


def test_folders_are_not_named_like_pages():
    paths = assign_paths(["https://h/a.html/b", "https://h/a.html", "https://h/a.md/c"], "pages")
    folders = {part for path in paths.values() for part in path.split("/")[:-1]}
    assert not any(folder.endswith((".md", ".html")) for folder in folders)


def test_names_do_not_depend_on_the_order_of_documents():
    uris = [f"https://h/{name}" for name in ("a", "A", "a.html", "a/", "b", "B?x=1")]
    expected = assign_paths(uris, "pages")
    random.Random(1).shuffle(uris)
    assert assign_paths(uris, "pages") == expected


def test_assigned_names_are_kept():
    first = assign_paths(["https://h/b"], "pages")
    second = assign_paths(["https://h/B", "https://h/b"], "pages", previous=first)
    assert second["https://h/b"] == first["https://h/b"]
    assert second["https://h/B"] != first["https://h/b"]


def test_taken_names_are_avoided():
    paths = assign_paths(["https://h/b"], "pages", used=["pages/h/b.md"])
    assert paths["https://h/b"] != "pages/h/b.md"


def test_dotted_names_become_folders():
    assert uri_parts("python:a.b.c") == (("a", "b"), "c")
