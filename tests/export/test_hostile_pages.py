"""Hostile text in every field of an export."""

import base64
import hashlib
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from kbkit.export import Facts, build_site, export_pages, write_project
from kbkit.export.facts import RelatedPassage, SourceFacts
from kbkit.export.mkdocs.page_head import content_security_policy, theme_scripts
from kbkit.export.pages.writer import read_documents
from kbkit.models import DocumentState
from kbkit.recipes import SiteSpec
from kbkit.text.markdown.sanitizing import escape
from tests.export.conftest import body_of, elements, front_matter

POISON = (
    "</title></script><script>alert(1)</script><img src=x onerror=alert(2)> {{ 7*7 }} {% raw %} "
    "\x1b]0;owned\x07\x9b2J\x85\u202egnp.exe\u2066<\u202escript>alert(8)</\x1bscript> "
    '--8<-- "/etc/passwd" [a](javascript:alert(3)) ](x) {: onclick=alert(4) } <!-- ` ``` | \x00\n'
    "--- \n# heading {#__config}\n- item"
)
"""Text of all fields, after the name of the field."""

ADDRESS = "https://example.org/'\"><script>alert(6)</script><img src=x onerror=alert(7)>{{ 7*7 }}/"


@pytest.fixture(scope="module")
def site(tmp_path_factory, document, info) -> Path:
    """A built site whose every field is hostile."""
    one = replace(
        document(
            "https://h/one?q=" + POISON,
            f"# one {POISON}\n\nfindable\n```\nopen {POISON}",
            title=f"title {POISON}",
            tags=(f"tag {POISON}", "ok"),
        ),
        id="one",
        state=DocumentState.STALE,
        metadata={
            "license": f"license {POISON}",
            "license_url": f"javascript:{POISON}",
            "attribution": f"credit {POISON}",
        },
    )
    two = replace(
        document(f"text:two {POISON}", "[x]: javascript:alert(5)\n\n---\n", title="two"), id="two"
    )
    facts = Facts(
        related={
            "two": [RelatedPassage(one.uri, f'x"> {POISON}', f"heading {POISON}")],
            "one": [RelatedPassage(two.uri), RelatedPassage("https://elsewhere/")],
        },
        ratings={"one": (4.5, 2)},
        scores={5: 2},
        lengths=[1, 10_000],
        sources=[
            SourceFacts(f"type {POISON}", f"https://h/{POISON}"),
            SourceFacts("files", f"place {POISON}", fidelity={"code": (1, 2)}),
        ],
    )
    about = replace(
        info("kb", description=f"description {POISON}", documents=2),
        embedder=f"embedder {POISON}",
        source_types=(f"source {POISON}",),
    )
    folder = tmp_path_factory.mktemp("hostile")
    spec = SiteSpec(title=f"site {POISON}", url=ADDRESS)
    write_project(folder, about, spec)
    export_pages(about, [one, two], folder / "docs", spec, facts=facts)
    assert build_site(folder) == folder / "site"
    return folder


def test_pages_contain_no_control_or_bidi_characters(site):
    steering = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
    found = [*pages(site), *(site / "docs").rglob("*.md"), *(site / "docs").rglob("*.txt")]
    assert len(found) > 10
    for path in found:
        assert steering.findall(path.read_text("utf-8")) == [], path


def pages(site: Path) -> list[Path]:
    return sorted((site / "site").rglob("*.html"))


def test_pages_contain_no_active_content(site):
    assert len(pages(site)) > 8
    for path in pages(site):
        text = path.read_text("utf-8")
        for tag, attributes in elements(text):
            assert not [name for name in attributes if name.startswith("on")], (path, tag)
            assert tag not in {"iframe", "object", "embed", "base", "img"}, path
            for name in ("href", "src", "action"):
                value = attributes.get(name, "").strip().lower()
                assert not value.startswith(("javascript:", "vbscript:", "data:text")), path
        assert "<script>alert(" not in text, path
        assert "7*7 }}/" not in text, path
        assert "root:x:0:0" not in text
        assert "49" not in re.findall(r"<h1[^>]*>(.*?)</h1>", text, re.DOTALL)[0]
        ids = [attributes.get("id") for _, attributes in elements(text)]
        assert ids.count("__config") <= 1


def test_external_links_have_noopener_and_nofollow(site):
    for path in pages(site):
        article = path.read_text("utf-8").partition("<article")[2].partition("</article")[0]
        for tag, attributes in elements(article):
            if tag == "a" and attributes.get("href", "").startswith("http"):
                assert attributes.get("rel") == "noopener nofollow", path


def test_open_fence_does_not_swallow_the_navigation(site):
    page = next(path for path in pages(site) if path.parent.name == "h")
    text = page.read_text("utf-8")
    onwards = text.partition('<nav class="kb-onwards"')[2].partition("</nav>")[0]
    assert "Related passages" in onwards
    assert "two" in onwards
    assert "elsewhere" not in onwards
    assert "could not be fetched since 2026-11-21" in text
    assert "rated 4.5 of 5 by 2 people" in text


def test_front_matter_has_only_known_fields(site):
    fields = "title source document_type since tags state rating search"
    for path in (site / "docs").rglob("*.md"):
        meta = front_matter(path)
        assert set(meta) <= set(fields.split())
        for text in (meta["title"], *meta.get("tags", ())):
            assert "<" not in text
            assert "{" not in text
        # outside of code, for other renderers
        prose = re.sub(r"(?s)```.*?```|`[^`\n]*`", "", body_of(path))
        assert "<script" not in prose, path
        assert "{{" not in prose, path


def test_machine_readable_files_escape_hostile_text(site):
    known = read_documents(site / "docs")["documents"]
    assert known[0]["title"].startswith("title </title>")
    text = (site / "site/documents.json").read_text("utf-8")
    assert "<" not in text
    built = site / "site"
    paths = {path.relative_to(built).as_posix() for path in (built / "pages").rglob("*.html")}
    assert {each["url"] for each in json.loads(text)["documents"]} == paths
    index = (site / "site/llms.txt").read_text("utf-8")
    assert sum(line.startswith("- [") for line in index.splitlines()) == 4


def test_plots_are_on_the_figures_page_only(site):
    home = (site / "site/figures.html").read_text("utf-8")
    assert home.count('<svg xmlns="http://www.w3.org/2000/svg" width="640"') == 3
    for picture in (site / "docs/plots").iterdir():
        assert set(re.findall(r"<(\w+)", picture.read_text())) <= {
            "svg",
            "g",
            "text",
            "rect",
            "title",
        }


@pytest.mark.parametrize("field", [POISON, "a|b", "<b>", "{#id}", "*x*", "&lt;", "\\", "`"])
def test_escaped_text_is_one_line_without_markup(field):
    escaped = escape(field)
    assert "\n" not in escaped
    assert "<" not in escaped
    assert "{" not in escaped
    assert not re.search(r"(?<!\\)[*_`\[\]|]", escaped)


def digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def test_policy_allows_only_scripts_of_the_theme(tmp_path):
    (tmp_path / "base.html").write_text(
        '<script>scope(new URL("{{ config.extra.scope | d(base_url) }}",location))</script>'
        "<script>palette()</script><script>{% if x %}a(){% endif %}</script>"
    )
    allowed = [
        'scope(new URL("../..",location))',
        'scope(new URL("https://h:1/a-b/",location))',
        "palette()",
    ]
    refused = [
        'scope(new URL("",alert(1),"",location))',
        "alert(1)",
        "palette();alert(1)",
        "a()",
        'scope(new URL("\\",location))',
    ]
    page = "".join(f"<script>{text}</script>" for text in allowed + refused)
    policy = content_security_policy(page, theme_scripts([tmp_path]))
    assert [text for text in allowed + refused if digest(text) in policy] == allowed


def test_policy_allows_all_scripts_of_the_theme(site):
    page = (site / "site" / "index.html").read_text("utf-8")
    inline = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    assert len(inline) > 2
    for text in inline:
        assert digest(text) in page
