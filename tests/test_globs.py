"""Globs: matches, also against a naive matcher, and time."""

import functools

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kbkit.errors import ConfigError
from kbkit.models import Filters
from kbkit.paths import admits, matches, split_glob
from kbkit.recipes import CrawlSource, FilesSource
from tests.growth import grows_with


@pytest.mark.parametrize(
    ("pattern", "fitting", "others"),
    [
        ("/guide/*", "guide/a guide/b.html /guide/sub/", "guide guide/sub/a other/guide/a"),
        ("/guide/**", "guide guide/ guide/a guide/b/c", "guided x/guide/a"),
        ("**/old/**", "old/a a/old a/b/old/c/d", "a/older/b"),
        ("docs/**/*.md", "docs/a.md docs/b/c/a.md", "docs/a.rst a.md x/docs/a.md"),
        ("*.md", "a.md x/y/a.md /.md", "a.md/b a.mdx"),
        ("drafts/", "drafts/a x/drafts/a/b drafts", "a/draft/b"),
        ("/drafts/", "drafts/a drafts/b/c", "x/drafts/a"),
        ("./a/b", "a/b", "x/a/b"),
        ("a/?", "a/b a/ü", "a a/bc a/b/c"),
        ("a/[b-d]x", "a/bx a/dx", "a/ax a/-x"),
        ("a/[!b]", "a/c a/!", "a/b"),
        ("a/[[]1]", "a/[1]", "a/1"),
        ("a/[b", "a/[b", "a/b"),
        ("a/{b,c/d}.{x,y}", "a/b.x a/c/d.y", "a/c.x a/b.z a/{b,c/d}.x"),
        ("a/{b{c,d},e}", "a/bc a/bd a/e", "a/b a/be"),
        ("a/{b}", "a/{b}", "a/b"),
        ("a/b**c", "a/bc a/bxc", "a/b/c"),
        ("a/.*", "a/.hidden", "a/b"),
        ("A/b", "A/b", "a/b"),
        ("", "/", "a a/b"),
    ],
)
def test_globs_match(pattern, fitting, others):
    assert [path for path in fitting.split() if not matches(path, [pattern])] == []
    assert [path for path in others.split() if matches(path, [pattern])] == []


def test_exclude_wins_and_no_include_means_all():
    assert admits("/guide/a/b", ("/guide/**",), ())
    assert not admits("/guide/a", ("/guide/**",), ("**/a",))
    assert admits("/x", (), ("/y",))
    assert not admits("/x", ("/y",), ())


def naive(names: tuple[str, ...], row: tuple[str, ...]) -> bool:
    """Match by the definition of globs."""

    @functools.cache
    def fits(name: str, pattern: str) -> bool:
        if not pattern:
            return not name
        if pattern[0] == "*":
            return fits(name, pattern[1:]) or (bool(name) and fits(name[1:], pattern))
        return bool(name) and pattern[0] in ("?", name[0]) and fits(name[1:], pattern[1:])

    if not row:
        return not names
    if row[0] == "**":
        return naive(names, row[1:]) or (bool(names) and naive(names[1:], row))
    return bool(names) and fits(names[0], row[0]) and naive(names[1:], row[1:])


@given(
    st.lists(st.text("ab.", min_size=1, max_size=4), max_size=6),
    st.lists(st.just("**") | st.text("ab.*?", min_size=1, max_size=4), min_size=1, max_size=6),
)
@example(["a", "b", "a", "b", "c"], ["**", "a", "**", "a", "b", "c"])
def test_stars_match_like_a_naive_matcher(names, row):
    row = [name if name == "**" else name.replace("**", "*") for name in row]
    pattern = "/" + "/".join(row)
    assert matches("/".join(names), [pattern]) == naive(tuple(names), tuple(row))


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*a" * 400 + "b", "a" * 8),
        ("**/a/" * 150 + "b", "a/" * 4),
        ("**/*a*/" * 100 + "b", "aa/" * 3),
        ("{a,b}" * 6 + "/" + "**/a/" * 100 + "b", "aaaaaa" + "/a" * 3),
    ],
)
def test_hostile_patterns_take_linear_time(pattern, path):
    grows_with(lambda number: matches(path * number, [pattern]), 1_000)
    assert not matches(path * 1_000, [pattern])


@pytest.mark.parametrize("pattern", ["{a,b}" * 7, "{a,{b," * 100 + "c" + "}}" * 100, "x" * 2_000])
def test_too_large_globs_are_refused(pattern):
    for use in (
        lambda: matches("a", [pattern]),
        lambda: Filters.of({"path": pattern}),
        lambda: CrawlSource(url="https://docs.example/", exclude=(pattern,)),
        lambda: FilesSource(path=pattern),
    ):
        with pytest.raises(ConfigError, match="glob"):
            use()


def test_glob_is_split_at_the_first_wildcard():
    assert split_glob("docs/{a,b}/*.md") == ("docs", "/{a,b}/*.md")
    assert split_glob("*.md") == ("", "/*.md")
    assert split_glob("/*.md") == ("/", "/*.md")
    assert split_glob("../notes/a.md") == ("../notes/a.md", "")
