"""Outcomes of sources, their counts in reports, and batches of small work."""

import itertools
import json
from dataclasses import replace
from operator import attrgetter

import pytest

from kbkit.errors import SourceError
from kbkit.ingest.embedding import RunCounters
from kbkit.models import DocumentState, PageRecord, Problem, SourceDocument
from kbkit.models.ingest_report import MAX_DOCUMENTS
from kbkit.recipes import JsonlSource, PluginSource
from kbkit.sources import Outcome, SourceEvent

SCRIPTED = PluginSource(name="scripted")


@pytest.fixture
def script(tmp_path, monkeypatch):
    """Sets the events of the next run."""
    info = tmp_path / "installed/scripted-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: scripted\nVersion: 1\n")
    (info / "entry_points.txt").write_text(
        "[kbkit.sources]\nscripted = tests.ingest.scripted_source:ScriptedSource\n"
    )
    monkeypatch.syspath_prepend(str(info.parent))
    from tests.ingest.scripted_source import ScriptedSource

    def write(*events):
        monkeypatch.setattr(ScriptedSource, "script", events)

    return write


def text(name, words="", **more):
    content = f"# {name}\n\nSome words of {name}. {words}\n"
    return SourceEvent(name, Outcome.FETCHED, SourceDocument(name, name, content, **more))


def event(name, outcome, reason=""):
    return SourceEvent(name, outcome, reason=reason)


def states(kb):
    return {document.uri: document.state for document in kb.documents}


def test_outcomes_are_counted_and_set_the_state(workspace, script):
    kb, steps = workspace.create("notes"), []
    script(
        text("a"),
        text("b"),
        event("d", Outcome.SKIPPED, "empty"),
        event("e", Outcome.SKIPPED),
        text("c"),
        event("f", Outcome.FAILED, "HTTP 500"),
    )
    first = kb.ingest(SCRIPTED, on_progress=steps.append)
    assert (first.new, first.fetched, first.same, first.gone) == (3, 3, 0, 0)
    assert first.skipped == (Problem("d", "empty"),)
    assert first.failed == (Problem("f", "HTTP 500"),)
    assert first.documents == tuple(kb.documents[name].id for name in "abc")
    crawled = [each for each in steps if each.stage == "crawl"]
    assert [(each.done, each.message) for each in crawled] == list(enumerate("abdecf", 1))
    assert crawled[-1].so_far.fetched == 3

    outcomes = [("a", Outcome.UNCHANGED), ("b", Outcome.FAILED, "HTTP 503")]
    outcomes += [("c", Outcome.GONE, "HTTP 404"), ("nobody", Outcome.UNCHANGED)]
    outcomes += [("nothing", Outcome.GONE, "HTTP 410"), ("g", Outcome.FAILED, "HTTP 500")]
    script(*(event(*outcome) for outcome in outcomes))
    second = kb.refresh()
    assert (second.new, second.changed, second.same, second.gone) == (0, 0, 1, 1)
    assert second.chunks_removed == 1
    assert [problem.uri for problem in second.failed] == ["b", "nothing", "g"]
    assert second.documents == (kb.documents["a"].id,)
    assert states(kb) == {"a": "current", "b": "stale", "c": "gone"}

    script(text("b", "More of it."), event("c", Outcome.UNCHANGED), event("b", Outcome.UNCHANGED))
    third = kb.refresh()
    # a document that is gone is not unchanged
    assert (third.changed, third.same, third.gone) == (1, 1, 1)
    assert states(kb)["b"] is DocumentState.CURRENT
    assert states(kb)["c"] is DocumentState.GONE

    script(event("b", Outcome.UNCHANGED), event("b", Outcome.GONE, "HTTP 410"), text("h"))
    fourth = kb.refresh()
    assert (fourth.new, fourth.same, fourth.gone) == (1, 1, 1)
    assert states(kb)["b"] is DocumentState.GONE, "the last event counts"
    script()
    last = kb.refresh()
    assert last.skipped[0].reason == "nothing to read"
    assert last.gone == 1
    assert set(states(kb).values()) == {DocumentState.GONE}


def test_last_event_of_a_document_counts(workspace, script):
    kb, gone = workspace.create("notes"), Outcome.GONE
    script(text("a"), text("b"))
    kb.ingest(SCRIPTED)
    script(text("a", "More."), event("a", gone), event("b", gone), text("b", "More."))
    kb.refresh()
    assert states(kb) == {"a": "gone", "b": "current"}


def test_visited_addresses_are_remembered_with_their_documents(workspace, script):
    kb = workspace.create("notes")
    from tests.ingest.scripted_source import ScriptedSource

    visited = PageRecord("http://x.org/a", 1, etag='"1"', document_uri="a")
    failed = PageRecord("http://x.org/b", 2)
    stored = PageRecord("http://x.org/c", 1, etag='"2"', document_uri="c")
    script(
        text("a"),
        replace(text("c"), record=stored),
        SourceEvent("b", Outcome.FAILED, reason="HTTP 500", record=failed),
    )
    kb.ingest(SCRIPTED)
    assert [record.url for record in ScriptedSource.known] == []
    # the address is not that of the document
    script(SourceEvent("http://x.org/a", Outcome.UNCHANGED, record=visited))
    report = kb.refresh()
    assert sorted(ScriptedSource.known, key=attrgetter("url")) == [failed, stored]
    assert (report.same, report.gone) == (1, 1)
    kb.refresh()
    assert sorted(ScriptedSource.known, key=attrgetter("url")) == [visited, failed, stored]


def test_stopped_run_says_so_and_keeps_its_documents(workspace, script):
    kb, calls = workspace.create("notes"), itertools.count()
    script(*map(text, "abcdef"))
    report = kb.ingest(SCRIPTED, stop=lambda: next(calls) >= 3)
    assert report.interrupted
    assert 0 < report.new < 6
    assert len(kb.documents) == report.new
    assert report.gone == 0
    rest = kb.refresh()
    assert (rest.interrupted, len(kb.documents)) == (False, 6)


def test_source_that_fails_at_all_pages_is_a_failed_source(workspace, script):
    kb = workspace.create("notes")
    script(event("a", Outcome.FAILED, "HTTP 500"), event("b", Outcome.FAILED, "HTTP 502"))
    report = kb.ingest(SCRIPTED)
    assert [problem.reason for problem in report.failed_sources] == ["HTTP 500"]
    script(event("a", Outcome.FAILED, "HTTP 500"), text("b"))
    report = kb.ingest(SCRIPTED)
    assert (report.new, report.failed_sources) == (1, ())


def test_pages_of_a_failed_source_do_not_count_for_the_next(workspace, script, tmp_path):
    script(text("a", fidelity={"words": (1, 10)}), SourceError("the host is gone"))
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"uri": "b", "text": "Some words."}')
    report = workspace.create("notes").ingest([SCRIPTED, JsonlSource(path=str(rows))])
    assert report.new == 2
    assert [each.uri for each in report.warnings] == ["scripted"]


def test_fidelity_of_documents_is_added_up():
    counters = RunCounters()
    whole, half = {"words": (10, 10), "code": (2, 2)}, {"words": (5, 10), "code": (1, 2)}
    for name, figures in (("a", whole), ("b", half)):
        document = SourceDocument(name, name, "text", fidelity=figures, note=f"guess of {name}")
        counters.count_fidelity(document)
    counters.count_fidelity(SourceDocument("c", "c", "text"))
    assert counters.report().fidelity == {"pages": (2, 2), "words": (15, 20), "code": (3, 4)}
    assert [problem.uri for problem in counters.poorly_read] == ["b"]
    assert [problem.reason for problem in counters.notes] == ["guess of a", "guess of b"]
    assert counters.judge("http://x.org/") == counters.report().fidelity
    (warning,) = counters.warnings
    assert "25.0% of the words are missing" in warning.reason
    assert "(2 pages measured; worst: b, a)" in warning.reason
    # the next source is judged by its own pages
    counters.count_fidelity(SourceDocument("d", "d", "text", fidelity=whole))
    assert counters.judge("http://y.org/") == {"pages": (1, 1), **whole}
    assert counters.judge("http://z.org/") == {}
    assert len(counters.warnings) == 1
    assert counters.report().fidelity == {"pages": (3, 3), "words": (25, 30), "code": (5, 6)}


def test_worst_pages_are_named_if_more_than_a_tenth_is_lost():
    counters = RunCounters()
    for name, kept in (("a", 8), ("b", 7), ("c", 9), ("d", 6), ("e", 5)):
        document = SourceDocument(name, name, "text", fidelity={"words": (kept, 10)})
        counters.count_fidelity(document)
    assert [problem.uri for problem in counters.poorly_read] == ["a", "b", "d", "e"]
    counters.judge("http://x.org/")
    assert counters.warnings[0].reason.endswith("worst: e, d, b)")


def test_report_names_a_bounded_number_of_documents_once_each():
    counters = RunCounters()
    counters.read(["a", "b", "a"])
    assert counters.report().documents == ("a", "b")
    counters.read(map(str, range(2 * MAX_DOCUMENTS)))
    counters.read(["late"])
    assert len(counters.documents) == MAX_DOCUMENTS
    assert "late" not in counters.report().documents


def test_document_of_two_sources_counts_once(workspace, tmp_path):
    for name, words in (("a", "Green."), ("b", "Black.")):
        row = {"uri": "tea", "title": "Tea", "content": f"# Tea\n\n{words}"}
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(row) + "\n")
    kb = workspace.create("notes")
    sources = [JsonlSource(path=str(tmp_path / name)) for name in ("a.jsonl", "b.jsonl")]
    first = kb.ingest(sources)
    assert (first.new, first.changed, first.same) == (1, 0, 0)
    again = kb.refresh(local=True)
    assert (again.new, again.changed, again.same) == (0, 1, 0)
    (tmp_path / "b.jsonl").write_text((tmp_path / "a.jsonl").read_text())
    kb.refresh(local=True)
    last = kb.refresh(local=True)
    assert (last.new, last.changed, last.same) == (0, 0, 1)
    assert not last.failed_sources


def test_document_that_is_gone_is_found_again_when_it_returns(workspace, script):
    kb = workspace.create("notes")
    tea = text("tea", "steeped")
    for step in (tea, event("tea", Outcome.GONE, "HTTP 404"), tea):
        script(step)
        kb.ingest(SCRIPTED)
        for mode in ("lexical", "dense"):
            assert bool(kb.search("steeped", mode=mode)) is (step is tea)
        assert len(list(kb.chunks)) == (step is tea)


def test_document_that_is_gone_is_counted_once(workspace, script):
    kb = workspace.create("notes")
    script(text("tea"), text("mate"))
    kb.ingest(SCRIPTED)
    script(text("mate"))
    assert [kb.refresh().gone for _ in range(2)] == [1, 0]
