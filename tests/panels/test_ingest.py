"""The ingest panel against a real workspace and a real site."""

from datetime import UTC, datetime

import pytest

from kbkit.errors import ConfigError
from kbkit.models import Problem
from kbkit.panels import IngestPanel
from kbkit.panels.ingest import MAX_PROBLEMS, problems
from kbkit.panels.source_form import SourceForm, source_models
from tests.panels.conftest import status, text_of
from tests.waiting import until


def fill(panel: IngestPanel, kind: str, **values) -> None:
    panel.type_box.value = kind
    for name, value in values.items():
        panel.form.controls[name].value = value


@pytest.mark.slow
def test_crawl_shows_counts_and_can_be_cancelled(scratch, slow_site):
    panel = IngestPanel(scratch)
    panel.kb_box.value = "pages"
    fill(panel, "crawl", url=slow_site, allow_private=True)
    panel.start_button.click()
    assert panel.running, "the kernel was not kept waiting"
    assert panel.start_button.disabled
    assert not panel.cancel_button.disabled
    until(lambda: "pages/s" in panel._counts.value and "0 new" not in panel._counts.value)
    first = panel._counts.value
    until(lambda: panel._counts.value != first)
    assert scratch["garden"].search("roses")
    panel.cancel_button.click()
    report = panel.wait(20)
    assert report is panel.report
    assert report.interrupted
    assert 0 < report.new < 1000
    assert status(panel).startswith("Stopped after ")
    assert "Start again to continue." in status(panel)
    assert not panel.start_button.disabled
    assert panel.cancel_button.disabled
    assert "pages" in panel.kb_box.options
    assert f"{report.new} new" in text_of(panel._counts.value)
    panel.close()


@pytest.mark.slow
def test_ingest_continues_and_lists_problems(scratch, slow_site):
    panel = IngestPanel(scratch["garden"])
    assert panel.kb_box is None
    fill(panel, "crawl", url=slow_site, allow_private=True, limit="12")
    panel.start()
    report = panel.wait(60)
    assert report is not None, status(panel)
    assert report.new + report.same >= 10
    assert report.failed
    problems = panel._problems.value
    assert "404" in problems
    assert "<b>.html" not in problems
    fill(panel, "package", name="no_such_package_here")
    panel.start()
    panel.wait(20)
    assert "nothing could be read" in status(panel)
    assert "no Python package of this name" in text_of(panel._problems.value)


def test_files_are_uploaded_replaced_and_refused(scratch):
    panel = IngestPanel(scratch)
    panel.kb_box.value = "garden"
    upload = {"type": "", "size": 1, "last_modified": datetime.now(UTC)}
    panel.upload.value = (
        {**upload, "name": "tulips.md", "content": memoryview(b"# Tulips\n\nBulbs in autumn.")},
        {**upload, "name": "<img src=x>.exe", "content": memoryview(b"MZ\x00\x00")},
    )
    report = panel.wait(30)
    assert (report.new, len(report.skipped)) == (1, 1), status(panel)
    assert panel.upload.value == ()
    assert scratch["garden"].documents["upload:tulips.md"].title == "Tulips"
    assert "<img" not in panel._problems.value
    panel.add_files([("tulips.md", b"# Tulips\n\nBulbs in autumn.")])
    assert panel.wait(30).same == 1
    panel.add_files([("tulips.md", b"# Tulips\n\nNever in spring.")])
    assert panel.wait(30).changed == 1
    assert scratch["garden"].search("spring")[0].title == "Tulips"


def test_sources_are_refreshed(scratch, tmp_path):
    (tmp_path / "a.md").write_text("# A\n\nFirst words of it.")
    panel = IngestPanel(scratch["garden"], base=tmp_path)
    panel.refresh()
    panel.wait(20)
    assert "has no sources to refresh" in status(panel)
    fill(panel, "files", path="*.md")
    panel.start()
    assert panel.wait(30).new == 1, status(panel)
    (tmp_path / "a.md").write_text("# A\n\nOther words of it.")
    panel.refresh_button.click()
    assert panel.wait(30).changed == 1


@pytest.mark.parametrize(
    ("kind", "values", "problem"),
    [
        ("crawl", {}, "URL: is missing"),
        ("crawl", {"url": "ftp://x"}, "URL: not a web address"),
        ("crawl", {"url": "https://x.example", "limit": "many"}, "Limit: must be a valid"),
        ("openapi", {}, "give either url or path"),
        ("mirror", {"path": "site"}, "base_url is needed"),
    ],
)
def test_invalid_fields_are_one_line_errors(scratch, kind, values, problem):
    panel = IngestPanel(scratch["garden"])
    fill(panel, kind, **values)
    panel.start()
    assert not panel.running
    assert isinstance(panel.error, ConfigError)
    assert problem in status(panel)
    assert 'role="alert"' in panel.status_line.value


def test_knowledge_base_is_dropped_when_its_first_source_fails(scratch, tmp_path):
    panel = IngestPanel(scratch, base=tmp_path)
    before = list(scratch)
    panel.kb_box.value = "typo"
    fill(panel, "package", name="no_such_package")
    panel.start()
    report = panel.wait(30)
    assert len(report.failed_sources) == 1
    assert "nothing could be read: see the problems below. typo was not created." in status(panel)
    assert "no_such_package" in text_of(panel._problems.value)
    assert list(scratch) == before
    assert "typo" not in panel.kb_box.options
    panel.add_files([("program.exe", b"MZ\x00\x00")])
    assert panel.wait(30).nothing_read
    assert list(scratch) == before
    fill(panel, "plugin", name="no_such_plugin")
    panel.start()
    panel.wait(30)
    assert list(scratch) == before
    (tmp_path / "a.md").write_text("# A\n\nWords.\n")
    fill(panel, "files", path="a.md")
    panel.start()  # keeps the name of the failed attempt
    assert panel.wait(30).new == 1
    assert "typo" in scratch
    fill(panel, "package", name="no_such_package")
    panel.start()
    assert panel.wait(30).nothing_read
    assert len(scratch["typo"].documents) == 1


@pytest.mark.parametrize("name", ["", "Not A Slug"])
def test_invalid_name_of_a_knowledge_base_is_refused(scratch, name):
    panel = IngestPanel(scratch)
    panel.kb_box.value = name
    fill(panel, "package", name="json")
    panel.start()
    panel.wait(10)
    assert panel.error is not None
    assert "name a knowledge base" in status(panel)


def test_every_source_has_a_form_with_labels():
    assert {"crawl", "page", "files", "package", "openapi", "mirror", "jsonl"} <= set(
        source_models()
    )
    for model in source_models().values():
        form = SourceForm(model)
        assert set(form.controls) == set(model.model_fields) - {"type"}
        assert all(control.description and control.tooltip for control in form.controls.values())


def test_form_creates_its_source():
    form = SourceForm(source_models()["crawl"])
    form.controls["url"].value = " https://x.example/ "
    form.controls["include"].value = "/a/*, /b/*"
    form.controls["tags"].value = "one,"
    form.controls["document_type"].value = "manual"
    form.controls["limit"].value = "5"
    source = form.source()
    assert source.model_dump(exclude_defaults=True) == {
        "url": "https://x.example/",
        "include": ("/a/*", "/b/*"),
        "tags": ("one",),
        "document_type": "manual",
        "limit": 5,
    }
    form.more.value = True
    assert form._others.layout.display is None


def test_only_some_problems_are_shown():
    many = [Problem(f"u{n}", "r") for n in range(500)]
    assert problems(many, many).count("<li>") == MAX_PROBLEMS + 1
    assert "900 more" in problems(many, many)


def test_sources_are_listed_disabled_and_removed(scratch, tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.md").write_text(f"# {name}\n\nText of {name}.\n")
    panel = IngestPanel(scratch, base=tmp_path)
    panel.kb_box.value = "kept"
    assert panel.kept.layout.display == "none"
    for name in ("one", "two"):
        fill(panel, "files", path=name)
        panel.start_button.click()
        panel.wait()
    kb = scratch["kept"]
    assert kb.spec.embedding.type == "auto"
    labels = [label for label, _ in panel.kept.choice.options]
    assert labels == ["Files: one (1 document)", "Files: two (1 document)"]
    assert panel.kept.choice.value == kb.sources["one"]
    assert IngestPanel(kb).kept.choice.value == kb.sources["one"]
    panel.kept.choice.value = kb.sources["two"]
    panel.kept.switch_button.click()
    assert not kb.sources["two"].enabled
    assert "two is disabled" in status(panel)
    assert panel.kept.switch_button.description == "Enable"
    panel.kept.switch_button.click()
    assert kb.sources["two"].enabled
    panel.kept.keep_box.value = False
    panel.kept.remove_button.click()
    assert [source.location for source in kb.sources] == ["one"]
    assert [document.title for document in kb.documents] == ["one"]
    panel.kept.keep_box.value = True
    panel.kept.remove_button.click()
    assert len(kb.sources) == 0
    assert len(kb.documents) == 1
    assert panel.kept.layout.display == "none"
