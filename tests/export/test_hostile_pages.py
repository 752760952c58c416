"""Text that is out to harm, in every field that an export shows."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
import yaml

from kbkit.export import Facts, build_site, export_pages, write_project
from kbkit.export.facts import Related, SourceFacts
from kbkit.export.pages.machine_readable import read_documents
from kbkit.markdown.disarming import escape
from kbkit.models import DocumentState
from kbkit.recipes import SiteSpec

POISON = (
    "</title></script><script>alert(1)</script><img src=x onerror=alert(2)> {{ 7*7 }} {% raw %} "
    '--8<-- "/etc/passwd" [a](javascript:alert(3)) ](x) {: onclick=alert(4) } <!-- ` ``` | \x00\n'
    "--- \n# heading {#__config}\n- item"
)
"""One text with everything; each field gets it behind a name of its own."""


class Elements(HTMLParser):
    """Names and attributes of the elements of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str]]] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, {name: value or "" for name, value in attrs}))


@pytest.fixture(scope="module")
def site(tmp_path_factory, document, info) -> Path:
    """A built site whose every field is hostile."""
    one = replace(
        document("https://h/one?q=" + POISON, f"# one {POISON}\n\nfindable\n```\nopen {POISON}",
                 title=f"title {POISON}", tags=(f"tag {POISON}", "ok")),
        id="one", state=DocumentState.STALE,
        metadata={"license": f"license {POISON}", "license_url": f"javascript:{POISON}",
                  "attribution": f"credit {POISON}"},
    )  # fmt: skip
    two = replace(document(f"text:two {POISON}", "[x]: javascript:alert(5)\n\n---\n", title="two"),
                  id="two")  # fmt: skip
    facts = Facts(
        related={"two": [Related(one.uri, f"x\"> {POISON}", f"heading {POISON}")],
                 "one": [Related(two.uri), Related("https://elsewhere/")]},
        ratings={"one": (4.5, 2)},
        scores={5: 2},
        lengths=[1, 10_000],
        sources=[SourceFacts(f"type {POISON}", f"https://h/{POISON}"),
                 SourceFacts("files", f"place {POISON}", fidelity={"code": (1, 2)})],
    )  # fmt: skip
    about = replace(
        info("kb", description=f"description {POISON}", documents=2),
        embedder=f"embedder {POISON}", source_types=(f"source {POISON}",),
    )  # fmt: skip
    folder = tmp_path_factory.mktemp("hostile")
    said = SiteSpec(title=f"site {POISON}")
    write_project(folder, about, said)
    export_pages(about, [one, two], folder / "docs", said, facts=facts)
    assert build_site(folder) == folder / "site"
    return folder


def pages(site: Path) -> list[Path]:
    return sorted((site / "site").rglob("*.html"))


def test_no_page_holds_anything_active(site):
    assert len(pages(site)) > 8
    for path in pages(site):
        text = path.read_text("utf-8")
        for tag, attributes in Elements(text).found:
            assert not [name for name in attributes if name.startswith("on")], (path, tag)
            assert tag not in {"iframe", "object", "embed", "base", "img"}, path
            for name in ("href", "src", "action"):
                value = attributes.get(name, "").strip().lower()
                assert not value.startswith(("javascript:", "vbscript:", "data:text")), path
        assert "<script>alert(1)" not in text, path
        assert "root:x:0:0" not in text
        assert "49" not in re.findall(r"<h1[^>]*>(.*?)</h1>", text, re.DOTALL)[0]
        ids = [attributes.get("id") for _, attributes in Elements(text).found]
        assert ids.count("__config") <= 1


def test_links_to_elsewhere_hand_nothing_on(site):
    for path in pages(site):
        article = path.read_text("utf-8").partition("<article")[2].partition("</article")[0]
        for tag, attributes in Elements(article).found:
            if tag == "a" and attributes.get("href", "").startswith("http"):
                assert attributes.get("rel") == "noopener nofollow", path


def test_a_fence_left_open_does_not_take_in_what_leads_on(site):
    page = next(path for path in pages(site) if path.parent.name == "h")
    text = page.read_text("utf-8")
    onwards = text.partition('<nav class="kb-onwards"')[2].partition("</nav>")[0]
    assert "Related passages" in onwards
    assert "two" in onwards
    assert "elsewhere" not in onwards
    assert "could not be fetched since 2026-11-21" in text
    assert "rated 4.5 of 5 by 2 people" in text


def test_front_matter_holds_what_was_meant_and_no_more(site):
    for path in (site / "docs").rglob("*.md"):
        _, head, body = path.read_text("utf-8").split("---\n", 2)
        meta = yaml.safe_load(head)
        assert set(meta) <= {"title", "source", "document_type", "since", "tags", "state",
                             "rating", "search"}  # fmt: skip
        for text in (meta["title"], *meta.get("tags", ())):
            assert "<" not in text
            assert "{" not in text
        # outside of code, for those who render it with something else
        prose = re.sub(r"(?s)```.*?```|`[^`\n]*`", "", body)
        assert "<script" not in prose, path
        assert "{{" not in prose, path


def test_programs_get_what_was_said_as_data(site):
    known = read_documents(site / "docs")["documents"]
    assert known[0]["title"].startswith("title </title>")
    text = (site / "site/documents.json").read_text("utf-8")
    assert "<" not in text
    assert {each["url"] for each in json.loads(text)["documents"]} == {
        path.relative_to(site / "site").as_posix() for path in (site / "site/pages").rglob("*.html")
    }
    index = (site / "site/llms.txt").read_text("utf-8")
    assert sum(line.startswith("- [") for line in index.splitlines()) == 4


def test_pictures_of_the_export_stand_on_its_own_pages_only(site):
    home = (site / "site/figures.html").read_text("utf-8")
    assert home.count('<svg xmlns="http://www.w3.org/2000/svg" width="640"') == 3
    for picture in (site / "docs/plots").iterdir():
        assert set(re.findall(r"<(\w+)", picture.read_text())) <= {"svg", "text", "rect", "title"}


@pytest.mark.parametrize("field", [POISON, "a|b", "<b>", "{#id}", "*x*", "&lt;", "\\", "`"])
def test_escaped_text_is_one_line_without_markup(field):
    escaped = escape(field)
    assert "\n" not in escaped
    assert "<" not in escaped
    assert "{" not in escaped
    assert not re.search(r"(?<!\\)[*_`\[\]|]", escaped)
