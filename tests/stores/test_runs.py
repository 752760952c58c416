"""Records of pages in the catalog."""

from dataclasses import fields
from datetime import UTC, datetime

from kbkit.models import PageRecord
from kbkit.stores.catalog import runs
from kbkit.stores.catalog.runs import RunMemory

PAGE = PageRecord(
    url="https://x.org/a",
    depth=3,
    etag='"1"',
    last_modified="Mon, 01 Jan 2024 00:00:00 GMT",
    links=("https://x.org/b", "https://x.org/c"),
    document_uri="https://x.org/a",
    location="https://x.org/moved",
    canonical="https://x.org/own",
)


def record(database, source, run_id, *pages, outcome="fetched"):
    at = datetime.now(UTC)
    visits = [(page, outcome, "", at) for page in pages]
    with database.write() as transaction:
        runs.record_visits(transaction, source.id, run_id, visits)


def begun(database, kb_id, url="https://x.org/"):
    with database.write() as transaction:
        spec = {"type": "crawl", "url": url}
        source = runs.save_source(transaction, kb_id, url, spec, base="", from_recipe=False)
        return source, runs.begin_run(transaction, source)


def test_page_record_round_trip(database, kb_id):
    assert all(getattr(PAGE, field.name) for field in fields(PAGE)), "so that nothing hides"
    source, run_id = begun(database, kb_id)
    record(database, source, run_id, PAGE)
    memory = RunMemory(database, source.id, run_id)
    assert memory.page(PAGE.url) == PAGE
    assert list(memory.visited()) == list(memory.known()) == [PAGE]


def test_visits_belong_to_their_run_and_source(database, kb_id):
    source, run_id = begun(database, kb_id)
    record(database, source, run_id, PAGE, PageRecord("https://x.org/b"))
    with database.write() as transaction:
        assert runs.begin_run(transaction, source) == run_id, "it never ended"
        runs.end_run(transaction, run_id, {})
        next_id = runs.begin_run(transaction, source)
    assert next_id != run_id
    later = PageRecord(PAGE.url, etag='"2"')
    record(database, source, next_id, later)
    record(database, source, next_id, PageRecord("https://x.org/c"), outcome="gone")
    memory = RunMemory(database, source.id, next_id)
    assert memory.page(PAGE.url) == later
    assert {page.url for page in memory.visited()} == {PAGE.url, "https://x.org/c"}
    assert {page.url for page in memory.known()} == {PAGE.url, "https://x.org/b"}
    other, other_run = begun(database, kb_id, "https://y.org/")
    assert RunMemory(database, other.id, other_run).page(PAGE.url) is None
