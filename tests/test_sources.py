"""Sources of a knowledge base: added, changed, disabled and removed."""

import json

import pytest

import kbkit
from kbkit.errors import ConfigError, ConflictError, NotFoundError, VersionConflictError
from kbkit.recipes import FilesSource, PackageSource


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KBKIT_WORKSPACE", raising=False)
    for name in ("docs", "more"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.md").write_text(f"# {name}\n\nText of {name}.\n")
    return tmp_path


@pytest.fixture
def kb(folder):
    with kbkit.open("kb") as workspace:
        yield workspace.create("notes")


@pytest.fixture
def run(folder, run_kbkit):
    return run_kbkit


def test_sources_are_remembered_without_being_read(kb):
    (added,) = kb.sources.add({"type": "files", "path": "docs"})
    assert (added.location, added.name, added.enabled, added.documents) == ("docs", "docs", True, 0)
    assert len(kb.documents) == 0
    assert kb.refresh().new == 1
    assert kb.sources["docs"].documents == 1
    with pytest.raises(ConfigError, match="cannot be ingested"):
        kb.sources.add("docs")


def test_source_that_fails_on_first_read_is_not_kept(kb):
    report = kb.ingest(FilesSource(path="docs"), PackageSource(name="no_such_package"))
    assert [problem.uri for problem in report.failed_sources] == ["no_such_package"]
    assert report.new == 1
    assert [source.location for source in kb.sources] == ["docs"]
    assert kb.refresh().failed_sources == ()


def test_source_that_fails_later_is_kept_and_named(kb, folder):
    kb.ingest(FilesSource(path="docs"), FilesSource(path="more"))
    (folder / "docs").rename(folder / "gone")
    report = kb.refresh()
    assert [problem.uri for problem in report.failed_sources] == ["docs"]
    assert "docs" in kb.sources
    assert len(kb.documents) == 2


def test_mistyped_source_is_corrected(kb):
    kb.sources.add([FilesSource(path="dox"), FilesSource(path="more")])
    changed = kb.sources.update("dox", path="docs", tags=["ours"])
    assert (changed.location, changed.name) == ("docs", "docs")
    assert kb.refresh().new == 2
    assert kb.documents["docs/a.md"].tags == ("ours",)
    assert kb.sources.update("docs", tags=None).options["tags"] == []
    with pytest.raises(ConflictError, match="another source already reads that"):
        kb.sources.update("docs", path="more")
    with pytest.raises(ConfigError, match="limit"):
        kb.sources.update("docs", limit=0)
    with pytest.raises(ConfigError, match="lmit"):
        kb.sources.update("docs", lmit=3)
    with pytest.raises(NotFoundError, match="there are: docs, more"):
        kb.sources.update("dox", limit=3)
    # its former path is free again
    assert kb.sources.add(FilesSource(path="dox"))[0].id != changed.id


def test_conflicting_change_of_a_source_is_refused(kb, folder):
    kb.ingest(FilesSource(path="docs"))
    with kbkit.open("kb") as other:
        theirs = other["notes"].sources
        find = kb.sources._find

        def find_early(source):
            found = find(source)
            theirs.disable("docs")
            return found

        kb.sources._find = find_early
        with pytest.raises(VersionConflictError, match="was changed since you read it"):
            kb.sources.update("docs", tags=["mine"])
        (left,) = theirs
    assert (left.enabled, left.options["tags"]) == (False, [])


def test_disabled_source_is_not_read(kb, folder):
    kb.ingest(FilesSource(path="docs"), FilesSource(path="more"))
    assert not kb.sources.disable("docs").enabled
    (folder / "docs/a.md").write_text("# Changed\n\nOther text.\n")
    (folder / "more/a.md").write_text("# Changed\n\nOther text.\n")
    assert kb.refresh().changed == 1
    assert kb.documents["docs/a.md"].title == "docs"
    kb.sources.disable("more")
    with pytest.raises(ConfigError, match="all its sources are disabled"):
        kb.refresh()
    assert kb.sources.enable("docs").enabled
    assert kb.refresh().changed == 1
    kb.sources.disable("docs")
    kb.ingest(FilesSource(path="docs"))  # naming it enables it
    assert kb.sources["docs"].enabled


def test_sync_skips_disabled_sources(kb):
    kb.sync([FilesSource(path="docs"), FilesSource(path="more")])
    kb.sources.disable("docs")
    report = kb.sync([FilesSource(path="docs"), FilesSource(path="more")])
    assert report.same == 1
    assert not kb.sources["docs"].enabled
    assert len(kb.documents) == 2


@pytest.mark.parametrize("keep", [True, False])
def test_source_is_removed_with_or_without_its_documents(kb, keep):
    kb.ingest(FilesSource(path="docs"), FilesSource(path="more"))
    kb.sources.remove("docs", keep_documents=keep)
    assert [source.location for source in kb.sources] == ["more"]
    assert ("docs/a.md" in kb.documents) == keep
    assert bool([hit for hit in kb.search("text of docs") if hit.uri == "docs/a.md"]) == keep
    kb.refresh()
    assert ("docs/a.md" in kb.documents) == keep


def test_ids_may_be_shortened_and_names_ambiguous(kb, folder):
    kb.sources.add([FilesSource(path="docs"), {"type": "jsonl", "path": "docs"}])
    with pytest.raises(ConfigError, match="several sources"):
        kb.sources["docs"]
    one = next(iter(kb.sources))
    assert kb.sources[one.id[:8]].id == one.id


def test_refresh_with_a_failed_source_exits_with_3(run, folder):
    run("new", "b3", "--files", "docs", "--files", "more")
    (folder / "docs").rename(folder / "gone")
    code, _, err = run("refresh", "b3")
    assert code == 3
    assert "nothing could be read from docs" in err
    assert "kbkit sources" in err
    assert run("sources", "disable", "b3", "docs")[0] == 0
    assert run("refresh", "b3")[0] == 0
    code, _, err = run("add", "b3", "--package", "no_such_package")
    assert code == 3
    assert "was not added" in err
    assert run("refresh", "b3")[0] == 0


def test_sources_are_managed_on_the_command_line(run, folder):
    run("new", "b3", "--files", "docs")
    code, out, _ = run("sources", "add", "b3", "--files", "dox", "--tag", "x", "--json")
    assert (code, json.loads(out)[0]["location"]) == (0, "dox")
    assert run("refresh", "b3")[0] == 3
    code, out, err = run("sources", "set", "b3", "dox", "path=more", "exclude=['z*']")
    assert (code, "more" in out) == (0, True), err
    assert run("refresh", "b3")[0] == 0
    listed = json.loads(run("sources", "list", "b3", "--json")[1])
    assert [(one["location"], one["documents"]) for one in listed] == [("docs", 1), ("more", 1)]
    assert listed[1]["options"]["exclude"] == ["z*"]
    assert run("sources", "set", "b3", "more", "exclude")[0] == 2
    assert run("sources", "set", "b3", "more", "lmit=3")[0] == 1
    assert run("sources", "remove", "b3", "more", "--keep-documents")[0] == 0
    assert run("sources", "remove", "b3", "docs", "--delete-documents")[0] == 0
    assert [one["uri"] for one in json.loads(run("documents", "b3", "--json")[1])] == ["more/a.md"]
    assert json.loads(run("sources", "list", "b3", "--json")[1]) == []
    assert run("sources", "remove", "b3", "docs")[0] == 1


def test_stopped_refresh_marks_no_document_as_gone(kb, folder):
    for number in range(30):
        (folder / "docs" / f"{number}.md").write_text(f"# Page {number}\n\nText {number}.\n")
    assert kb.ingest(FilesSource(path="docs")).new == 31
    progress = []
    report = kb.refresh(on_progress=progress.append, stop=lambda: len(progress) > 5)
    assert report.interrupted
    assert report.gone == 0
    assert {document.state for document in kb.documents} == {"current"}
    assert kb.refresh().gone == 0
