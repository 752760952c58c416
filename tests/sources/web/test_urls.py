"""Canonical addresses."""

import pytest

from kbkit.sources.web.urls import CrawlScope, canonical, index_alias

BASE = "https://docs.example/a/b.html"


@pytest.mark.parametrize(
    ("href", "url"),
    [
        ("c.html#x", "https://docs.example/a/c.html"),
        ("../../d", "https://docs.example/d"),
        ("HTTPS://DOCS.Example:443/X/./y/../z", "https://docs.example/X/z"),
        ("http://docs.example:80", "http://docs.example/"),
        ("http://docs.example:443", "http://docs.example:443/"),
        ("https://docs.example:80/x", "https://docs.example:80/x"),
        ("http://docs.example:8080/", "http://docs.example:8080/"),
        ("/%7euser/%c3%bc ü", "https://docs.example/~user/%C3%BC%20%C3%BC"),
        ("/x?b=2&a=1&utm_source=q&PHPSESSID=1", "https://docs.example/x?b=2&a=1"),
        ("/x;jsessionid=12?y", "https://docs.example/x?y"),
        ("//other.example/x", "https://other.example/x"),
        ("http://bücher.example/", "http://xn--bcher-kva.example/"),
        ("http://[::1]:81/", "http://[::1]:81/"),
        ("https://docs.example//a/./b", "https://docs.example//a/b"),
        ("/100%", "https://docs.example/100%25"),
        ("back\\slash.html", "https://docs.example/a/back/slash.html"),
        ("\\\\h\\x", "https://h/x"),
        ("https:\\\\h\\x", "https://h/x"),
        ("a?b=\\c", "https://docs.example/a/a?b=%5Cc"),
        ("mailto:a@b", ""),
        ("javascript:x", ""),
        ("http://[::1", ""),
        ("http://x:port/", ""),
        ("http:///x", ""),
    ],
)
def test_addresses_have_one_canonical_form(href: str, url: str) -> None:
    assert canonical(href, BASE) == url
    if url:
        assert canonical(url) == url


def test_index_pages_are_their_folder() -> None:
    assert index_alias("https://x/a/") == "https://x/a/index.html"
    assert index_alias("https://x/a/index.html") == "https://x/a/"
    assert index_alias("https://x/a/b.html") == ""


def test_routes_of_scripts_are_kept_on_request() -> None:
    def routed(url: str) -> str:
        return canonical(url, "https://x.org/docs/", routes=True)

    assert routed("#/guide") == "https://x.org/docs/#/guide"
    assert routed("#/guide?id=water") == "https://x.org/docs/#/guide"
    assert routed("#!/a b") == "https://x.org/docs/#!/a%20b"
    assert routed("#/") == routed("#!/") == routed("#part") == routed("#") == "https://x.org/docs/"
    assert canonical("#/guide", "https://x.org/docs/") == "https://x.org/docs/"
    assert CrawlScope("https://x.org/docs/").link("#/guide", "https://x.org/docs/") == (
        "https://x.org/docs/"
    )
    scope = CrawlScope("https://x.org/docs/", routes=True)
    assert scope.link("#/guide", "https://x.org/docs/#/tea") == "https://x.org/docs/#/guide"


@pytest.mark.parametrize(
    ("start", "target", "prefix"),
    [
        ("https://a.org/docs/", "https://a.org/docs/en/start", "https://a.org/docs/"),
        ("https://a.org/docs/", "https://b.org/docs/en/start", "https://b.org/docs/"),
        ("https://a.org/docs/", "https://b.org/manual/en/start", "https://b.org/manual/en/"),
        ("https://a.org/docs/", "https://a.org/manual/start", "https://a.org/manual/"),
        ("https://h/docs", "https://h/docs/", "https://h/docs/"),
        ("https://h/docs", "https://h/docs/v2/", "https://h/docs/"),
        ("https://h/docs", "https://www.h/manual/", "https://www.h/manual/"),
        ("https://h/docs", "https://h/docs.html", "https://h/"),
        ("https://h/docs/", "https://h/docs/v2/", "https://h/docs/"),
    ],
)
def test_scope_follows_the_redirect_of_the_start(start, target, prefix) -> None:
    scope = CrawlScope(start)
    scope.follow_start(target)
    assert scope.prefix == prefix
