"""Ingestion into local and served knowledge bases."""

import pytest

import kbkit
from kbkit.errors import ConfigError, NotFoundError, VersionConflictError
from kbkit.models import SourceDocument
from kbkit.runtime.web_server import serve_folder

PAGE = "<html><body><main><h1>{0}</h1><p>{0} is a drink. {1}</p></main></body></html>"


@pytest.fixture(scope="module")
def web(tmp_path_factory):
    site = tmp_path_factory.mktemp("web")
    link = "<a href='/milk.html'>milk</a>"
    (site / "index.html").write_text(PAGE.format("Tea", f"Look at {link}, too."))
    (site / "milk.html").write_text(PAGE.format("Milk", "It is white."))
    with serve_folder(site) as url:
        yield url.rstrip("/") + "/"


@pytest.fixture(scope="module")
def kb(workspace):
    return workspace.create("drinks")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    base = tmp_path_factory.mktemp("machine")
    docs = base / "docs"
    (docs / "deep").mkdir(parents=True)
    (docs / "tea.md").write_text("# Tea\n\nGreen tea steeps.\n")
    (docs / "deep" / "milk.md").write_text("# Milk\n\nMilk is white.\n")
    (docs / "deep" / "draft.md").write_text("# Draft\n\nNothing.\n")
    (docs / ".secret.md").write_text("# Secret\n\nHidden.\n")
    (base / "outside.md").write_text("# Outside\n\nNot here.\n")
    (docs / "link.md").symlink_to(base / "outside.md")
    return base


def test_files_of_this_machine_are_read(kb, folder):
    progress = []
    report = kb.ingest(
        {"type": "files", "path": "docs", "exclude": ["draft.md"], "tags": ["mine"]},
        base=folder,
        remember=False,
        on_progress=progress.append,
    )
    assert (report.new, progress[-1].done) == (2, 2)
    uris = [one.uri for one in kb.documents.list()]
    assert uris == ["docs/deep/milk.md", "docs/tea.md"]
    assert kb.documents["docs/tea.md"].tags == ("mine",)
    assert set(report.documents) == {one.id for one in kb.documents.list()}
    assert kb.search("milk")[0].uri == "docs/deep/milk.md"
    again = kb.ingest({"type": "files", "path": "docs/*.md"}, base=folder, remember=False)
    assert again.new == 0
    one = kb.ingest(kbkit.FilesSource(path="docs/deep/draft.md"), base=folder, remember=False)
    assert (one.new, kb.documents["docs/deep/draft.md"].title) == (1, "Draft")
    missing = kb.ingest({"type": "files", "path": "nowhere"}, base=folder, remember=False)
    assert [problem.uri for problem in missing.failed] == ["nowhere"]
    assert "no such file or folder" in missing.failed[0].reason
    for document in kb.documents.list():
        kb.documents.delete(document.id)


def test_reading_of_files_can_be_stopped(kb, folder):
    files = {"type": "files", "path": "docs"}
    report = kb.ingest(files, base=folder, remember=False, stop=lambda: True)
    assert (report.interrupted, report.new) == (True, 0)


def test_file_of_unknown_format_is_skipped(kb, folder):
    (folder / "a.exe").write_bytes(b"MZ")
    report = kb.ingest({"type": "files", "path": "a.exe"}, base=folder, remember=False)
    assert report.nothing_read
    assert [problem.uri for problem in report.skipped] == ["a.exe"]
    (folder / "a.exe").unlink()


def test_sources_are_remembered_refreshed_and_removed(workspace, kb, web):
    site = {"type": "crawl", "url": web, "allow_private": True}
    report = kb.ingest(site)
    assert (report.new, report.failed) == (2, ())
    (source,) = kb.sources
    assert (source.type, source.location, source.enabled) == ("crawl", web, True)
    assert kb.sources[source.id] == kb.sources[web] == source
    assert len(kb.sources) == 1
    assert web in kb.sources
    assert kb.refresh().same == 2
    runs = workspace.runs([kb.name])
    assert [(run.kb, run.source) for run in runs] == [("drinks", web)] * 2
    assert (runs[0].counts["same"], runs[1].counts["new"]) == (2, 2)
    assert runs[0].started_at > runs[1].finished_at
    assert runs == [run for run in workspace.runs() if run.kb == kb.name]
    kb.ingest([site, {"type": "package", "name": "wave"}])
    package, again = workspace.runs([kb.name])[:2]
    assert again.counts == {"same": 2}
    assert "same" not in package.counts
    kb.sources.remove("wave", keep_documents=False)
    assert workspace.runs([]) == []
    with pytest.raises(NotFoundError, match="nowhere"):
        workspace.runs(["nowhere"])
    assert kb.sources.update(web, limit=1).options["limit"] == 1
    assert not kb.sources.disable(web).enabled
    with pytest.raises(ConfigError, match="all its sources are disabled"):
        kb.refresh()
    assert kb.sources.enable(web).enabled
    with pytest.raises(NotFoundError, match="no source 'http://nowhere'"):
        kb.sources["http://nowhere"]
    with pytest.raises(ConfigError, match="nope: unknown key"):
        kb.sources.update(web, nope=1)
    (page,) = kb.sources.add({"type": "page", "url": f"{web}milk.html", "allow_private": True})
    assert page.type == "page"
    kb.sources.remove(page.id)
    kb.sources.remove(source.id)
    assert [list(kb.sources), len(kb.documents)] == [[], 0]


def test_source_change_with_an_old_version_is_refused(kb):
    (seen,) = kb.sources.add({"type": "page", "url": "https://tea.example/a?b=1"})
    at = seen.location
    changed = kb.sources.update(at, tags=["hot"], if_match=seen.version)
    assert (changed.options["tags"], changed == kb.sources[at]) == (["hot"], True)
    for change in (kb.sources.enable, kb.sources.disable, kb.sources.remove, kb.sources.update):
        with pytest.raises(VersionConflictError, match="was changed since"):
            change(at, if_match=seen.version)
        with pytest.raises(VersionConflictError):
            change(at, if_match="")
    assert kb.sources[at] == changed
    off = kb.sources.disable(at, if_match=changed.version)
    assert kb.sources.enable(at, if_match=off.version) == changed
    kb.sources.remove(at, if_match=changed.version)
    assert at not in kb.sources


def test_documents_are_ingested_directly(kb):
    tea = SourceDocument("doc:tea", "Tea", "# Tea\n\nGreen.", tags=("a",), metadata={"x": 1})
    milk = {"text": "Milk is white.", "metadata": {"url": "https://m.example/milk"}}
    assert kb.ingest([tea, milk]).new == 2
    assert (kb.documents["doc:tea"].tags, kb.documents["doc:tea"].metadata) == (("a",), {"x": 1})
    assert kb.documents["https://m.example/milk"].content.strip() == "Milk is white."
    for document in kb.documents.list():
        kb.documents.delete(document.id)


def test_configured_chunking_chunks_again(kb):
    kb.add("Long", "\n\n".join(f"Paragraph {n} has some words." for n in range(40)))
    before = len(kb.chunks)
    spec = kb.spec.model_copy(update={"chunking": kbkit.ChunkingSpec(size=100)})
    assert kb.configure(spec, description="Cut small").chunks_added > 0
    assert kb.spec == spec
    assert kb.info().description == "Cut small"
    assert len(kb.chunks) > before
    assert not kb.improve(estimate=True).summaries < 0


def test_ingestion_errors(kb):
    for source, message in (
        (5, "5 cannot be ingested"),
        ({"type": "nope"}, "^type: 'nope' is unknown"),
        ({"type": "page", "url": "ftp://x"}, "^url: not a web address"),
    ):
        with pytest.raises(ConfigError, match=message):
            kb.ingest(source)
    with pytest.raises(ConfigError, match="no sources to refresh"):
        kb.refresh()
