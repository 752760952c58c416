"""Valid and invalid paths of files."""

import unicodedata
from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbkit.errors import InvalidPathError, PathOutsideError
from kbkit.files.paths import collision_key, fault, parts_of

OUTSIDE_PATHS = (
    ".. ../x a/.. a/../b a/../../b / /etc/passwd //host/share \\x \\\\h\\s C:/x c:x ~/x ~ "
    "..\\x a\\..\\b ... a/.../b ./../x"
)
OUTSIDE = [*OUTSIDE_PATHS.split(" "), ".. /x"]
INVALID_PATHS = (
    "a\\b a\x00b a\nb a\x7fb a\x9bb a:b a*b what? a<b a|b CON con.md NUL nul.tar.gz Aux prn "
    "COM1 com¹ LPT9.txt CONIN$ x/con/y a. a./b .git .git/hooks/x x/.git/y git~1 GIT~2 .trash "
    ".kbkit-x a\u202eb \u200bx \ufeffx \u200c.git \u200c a\u2215b a\uff0fb a\uff3cb a\u2028b "
    "\ud800 ＣＯＮ"
)
INVALID = [
    *INVALID_PATHS.split(" "),
    'a"b',
    "CON .md",
    "a ",
    " a",
    "a /b",
    "x" * 256,
    "é" * 128,
    "a/" * 60 + "x",
    "/".join(["x" * 250] * 13),
]


@pytest.mark.parametrize("path", OUTSIDE)
def test_paths_that_lead_out_are_refused(path):
    with pytest.raises(PathOutsideError):
        parts_of(path)


@pytest.mark.parametrize("path", INVALID)
def test_unportable_names_are_refused(path):
    with pytest.raises(InvalidPathError) as error:
        parts_of(path)
    assert str(error.value).isprintable()


@pytest.mark.parametrize("path", [None, 3, b"x", ["x"]])
def test_paths_must_be_text(path):
    with pytest.raises(InvalidPathError):
        parts_of(path)


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ("", ()),
        (".", ()),
        ("./", ()),
        ("a", ("a",)),
        ("a/", ("a",)),
        ("./a//b/", ("a", "b")),
        ("notes/Grüße.md", ("notes", "Grüße.md")),
        ("a b/c-d.md", ("a b", "c-d.md")),
        ("x" * 255, ("x" * 255,)),
        ("é" * 127, ("é" * 127,)),
        ("日本.md", ("日本.md",)),
        ("console.md", ("console.md",)),
        ("com10", ("com10",)),
        ("a..b", ("a..b",)),
        ("می\u200cخواهم.md", ("می\u200cخواهم.md",)),
        ("it's #1 & [x]!.md", ("it's #1 & [x]!.md",)),
        (PurePosixPath("a/b"), ("a", "b")),
    ],
)
def test_valid_paths_are_split(path, parts):
    assert parts_of(path) == parts


def test_names_are_normalized():
    composed, apart = "Grüße.md", unicodedata.normalize("NFD", "Grüße.md")
    assert composed != apart
    assert parts_of(apart) == parts_of(composed) == (composed,)


@pytest.mark.parametrize(
    ("name", "other"),
    [("a.md", "A.MD"), ("Grüße", "grüsse"), ("É", "e\u0301"), ("می\u200cx", "میx"), ("ß", "SS")],
)
def test_similar_names_share_a_collision_key(name, other):
    assert collision_key(name) == collision_key(other)


@given(st.text())
def test_accepted_paths_stay_inside_and_are_stable(path):
    try:
        parts = parts_of(path)
    except InvalidPathError:
        return
    assert parts_of("/".join(parts)) == parts
    for part in parts:
        assert part not in ("", ".", "..")
        assert not {"/", "\\", "\0"} & set(part)
        assert len(part.encode()) <= 255
        assert not fault(part)
