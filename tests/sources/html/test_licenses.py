"""Where pages, files and packages state their license."""

import io
import re
import zipfile
from dataclasses import replace

import pytest

from kbkit.models import License, PageRecord
from kbkit.recipes import CrawlSource, PackageSource, PageSource
from kbkit.sources import Outcome, SourceContext, open_reader
from kbkit.sources.formats import parse
from kbkit.sources.html.extract import extract
from kbkit.sources.html.metadata import rights_license
from kbkit.sources.openapi import ApiDescription
from kbkit.sources.package import origin_of
from kbkit.sources.web import Response
from kbkit.sources.web.pages import PageRequest, Validators
from tests.manuals import manual
from tests.sources.formats import samples

CC = "https://creativecommons.org/licenses/by/4.0/"
BY = License("CC-BY-4.0", CC)


def stated(head="", body="", url="https://h/docs/a.html"):
    page = f"<html><head><title>T</title>{head}</head><body><main><h1>T</h1><p>Words of a page."
    return extract(f"{page}</p></main>{body}</body></html>", url).license


@pytest.mark.parametrize(
    ("head", "body", "license"),
    [
        (f'<link rel="license" href="{CC}">', "", BY),
        ('<link rel="license" href="../terms">', "", License("", "https://h/terms")),
        ("", f'<a rel="license noopener" href="{CC}">Some rights</a>', BY),
        ('<meta name="dcterms.license" content="MIT License">', "", License("MIT")),
        ('<meta name="DC.rights" content="© 2020 A">', "", License("", "", "© 2020 A")),
        ('<meta name="copyright" content="A GmbH">', "", License("", "", "A GmbH")),
        ("", "<footer>© 2020 Ann. Built with B</footer>", License("", "", "© 2020 Ann.")),
        ("", f'<div class="footer">Text under <a href="{CC}">CC</a></div>', BY),
        (
            "",
            "<footer>Licensed under the <a href='/l'>MIT License</a>.</footer>",
            License("MIT", "https://h/l"),
        ),
    ],
)
def test_pages_state_licenses_in_many_ways(head, body, license):
    assert stated(head, body) == license


def test_metadata_overrides_the_footer():
    foot = "<footer>© 2020 Ann<br>Licensed under the MIT License.</footer>"
    assert stated(f'<link rel="license" href="{CC}">', foot) == License(
        "CC-BY-4.0", CC, "© 2020 Ann"
    )


def test_all_licenses_of_a_page_are_named():
    both = f'<a rel="license" href="{CC}">x</a><a rel="license" href="https://spdx.org/licenses/MIT">y</a>'
    assert stated("", both).name == "CC-BY-4.0, MIT"


@pytest.mark.parametrize(
    "body",
    [
        '<figure><p class="copyright">© Somebody, a picture</p></figure>',
        '<p class="copyright">Foto: © Getty Images</p>',
        "<footer>Copyright</footer>",
        "<footer>© 2020</footer>",
        '<p>The program is licensed under the MIT License. <a href="https://mit.edu">MIT</a></p>',
        '<a rel="license" href="javascript:alert(1)"></a>',
        '<link rel="license" href="http://[">',
    ],
)
def test_other_statements_are_no_license_of_the_page(body):
    assert stated("", body) == License()


def test_hostile_license_is_bounded():
    license = stated(
        f'<meta name="copyright" content="{"x" * 1_000_000}">',
        f'<a rel="license" href="/l">{"<b>y</b>" * 50_000}</a>',
    )
    assert len(license.name) <= 200
    assert len(license.attribution) <= 300


@pytest.mark.parametrize(
    ("text", "license"),
    [
        ("MIT License", License("MIT")),
        (CC, BY),
        (f"© A, see {CC}.", License("CC-BY-4.0", CC, f"© A, see {CC}.")),
        (
            "© A. Licensed under CC BY 4.0.",
            License("CC-BY-4.0", "", "© A. Licensed under CC BY 4.0."),
        ),
        ("© 2020 A", License("", "", "© 2020 A")),
        ("", License()),
    ],
)
def test_licenses_in_free_text(text, license):
    assert rights_license(text) == license


def test_books_have_licenses():
    book = (
        '<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/">'
        f"<metadata><dc:title>B</dc:title><dc:rights>© 2020 A</dc:rights>"
        f'<link rel="cc:license" href="{CC}"/></metadata><manifest><item id="a" href="a.xhtml" '
        'media-type="application/xhtml+xml"/></manifest><spine><itemref idref="a"/></spine>'
        "</package>"
    )
    container = '<container><rootfiles><rootfile full-path="b.opf"/></rootfiles></container>'
    page = "<html><body><h1>C</h1><p>Words.</p></body></html>"
    data = samples.zipped({"META-INF/container.xml": container, "b.opf": book, "a.xhtml": page})
    (part,) = parse("b.epub", data)
    assert License.of(part.metadata) == License("CC-BY-4.0", CC, "© 2020 A")


def test_word_documents_have_licenses_in_their_properties():
    properties = (
        '<Properties xmlns:vt="x"><property fmtid="{D}" pid="2" name="License">'
        "<vt:lpwstr>CC BY 4.0</vt:lpwstr></property></Properties>"
    )
    core = '<c:core xmlns:dc="d" xmlns:c="c"><dc:rights>© 2020 A</dc:rights></c:core>'
    with zipfile.ZipFile(io.BytesIO(samples.docx())) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    added = {"docProps/custom.xml": properties, "docProps/core.xml": core}
    (part,) = parse("a.docx", samples.zipped(members | added))
    assert License.of(part.metadata) == License("CC-BY-4.0", "", "© 2020 A")


def test_each_document_of_an_api_has_its_license():
    values = {
        "openapi": "3.1.0",
        "info": {
            "title": "A",
            "version": "1",
            "license": {
                "name": "Apache 2.0",
                "url": "https://www.apache.org/licenses/LICENSE-2.0.html",
            },
        },
        "paths": {"/a": {"get": {"summary": "Get it"}}},
    }
    licenses = {
        License.of(document.metadata) for document in ApiDescription(values, "api.yaml").documents()
    }
    assert licenses == {License("Apache-2.0", "https://www.apache.org/licenses/LICENSE-2.0.html")}


@pytest.mark.parametrize(("package", "name"), [("nh3", "MIT"), ("lxml", "BSD-3-Clause")])
def test_packages_have_licenses_in_their_metadata(package, name):
    assert origin_of(package).license.name == name


def test_each_document_of_a_package_has_its_license():
    events = list(open_reader(PackageSource(name="iniconfig")).events(SourceContext()))
    assert {event.document.metadata["license"] for event in events} == {"MIT"}


def test_license_text_in_the_metadata_is_no_license_name():
    assert "Copyright" not in origin_of("altair").license.name


def crawled(site, **options):
    spec = CrawlSource(url=site.url + "/", allow_private=True, sitemap=False, **options)
    context = SourceContext(user_agent="kbkit/test", timeout=5)
    return {
        event.uri.removeprefix(site.url): License.of(event.document.metadata)
        for event in open_reader(spec).events(context)
        if event.document
    }


def test_license_of_a_recipe_is_the_default(site, page):
    site.pages["/"] = page("Home", "/a", head=f'<link rel=license href="{CC}">')
    site.pages["/a"] = page("A", head='<meta name="copyright" content="A GmbH">')
    assert crawled(site, license="mit", attribution="© Us") == {
        "/": License("CC-BY-4.0", CC, "© Us"),
        "/a": License("MIT", "", "A GmbH"),
    }


def test_changed_license_of_a_recipe_invalidates_pages():
    first, second = (Validators(PageSource(url="https://h/", license=name)) for name in ("A", "B"))
    answer = Response("https://h/", Outcome.FETCHED)
    _, answer = first.compare(PageRequest("https://h/"), answer)
    record = PageRecord("https://h/", etag=answer.etag)
    conditions = first.to_send(replace(record, last_modified="x"))
    assert conditions == {"If-Modified-Since": "x"}
    assert not second.to_send(replace(record, last_modified="x"))


@pytest.mark.parametrize(
    ("package", "page", "license"),
    [
        (
            "python3.11-doc",
            "library/json.html",
            License("PSF-2.0", "", "© Copyright 2001-2026, Python Software Foundation."),
        ),
        ("python-flask-doc", "quickstart.html", License("", "", "© Copyright 2023 Pallets.")),
        ("sqlite3-doc", "lang_select.html", License()),
    ],
)
def test_real_documentation_has_its_license(package, page, license):
    text = (manual(package) / page).read_text("utf-8")
    actual = extract(text, "https://docs.example.org/a.html").license
    years = re.compile(r"-20\d\d,")  # of a later release
    assert replace(actual, attribution=years.sub("-2026,", actual.attribution)) == license
