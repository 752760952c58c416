"""The ingest panel: read sources, and show progress."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import ipywidgets as widgets
from traitlets import Any, Bunch

from kbkit.errors import ConfigError
from kbkit.models import IngestReport, Problem, Progress, SourceInfo
from kbkit.models.values import pluralize
from kbkit.panels import controls, render
from kbkit.panels.controls import AnyTarget, KnowledgeBaseSelector, Topic
from kbkit.panels.panel import JobPanel, Panel
from kbkit.panels.render import PATH_LENGTH, TITLE_LENGTH, plain
from kbkit.panels.source_form import SourceForm, add_files, source_label, source_models

if TYPE_CHECKING:
    from kbkit.knowledge_base import KnowledgeBase
    from kbkit.runtime.progress import OnProgress

    Ingest = Callable[[KnowledgeBase, OnProgress, Callable[[], bool]], IngestReport]


class KeptSources(widgets.VBox):  # type: ignore[misc]  # ipywidgets has no types
    """Choice of a knowledge base's sources; hidden if there are none."""

    def __init__(self, panel: Panel, find: Callable[[], KnowledgeBase | None]) -> None:
        self._panel = panel
        self._find = find
        self.choice = controls.make(widgets.Dropdown, "Sources")
        self.choice.observe(lambda _change: self._show_chosen(), "value")
        self.switch_button = controls.button("Disable", "Skip it in refreshes", self.switch)
        self.remove_button = controls.button("Remove", "Remove this source", self.remove)
        self.keep_box = controls.make(
            widgets.Checkbox, "Keep its documents", value=True, indent=False
        )
        actions = controls.buttons(self.switch_button, self.remove_button, self.keep_box)
        super().__init__([controls.row(self.choice), actions])
        self.refresh()

    def refresh(self) -> None:
        kb, before = self._find(), self.choice.value
        sources = [] if kb is None else list(kb.sources)
        self.choice.options = [(_label(source), source) for source in sources]
        # ipywidgets selects nothing when options change
        same = [source for source in sources if before is not None and source.id == before.id]
        self.choice.value = next(iter(same + sources), None)
        controls.show(self, bool(sources))
        self._show_chosen()

    def switch(self) -> None:
        """Disable the source for refreshes, or enable it."""
        source, kb = self.choice.value, self._find()
        if source is None or kb is None:
            return
        with self._panel.show_errors():
            changed = (kb.sources.disable if source.enabled else kb.sources.enable)(source.id)
            self.refresh()
            state = "enabled" if changed.enabled else "disabled"
            self._panel.announce(f"{render.plain(source.location, 80)} is {state}")

    def remove(self) -> None:
        """Remove the source, and its documents unless `keep_box` is set."""
        source, kb = self.choice.value, self._find()
        if source is None or kb is None:
            return
        with self._panel.show_errors():
            keep = bool(self.keep_box.value)
            kb.sources.remove(source.id, keep_documents=keep)
            self.refresh()
            self._panel.publish("documents")
            outcome = "stay" if keep else "are in the trash"
            self._panel.announce(
                f"Removed {render.plain(source.location, 80)}; "
                f"its {pluralize(source.documents)} {outcome}"
            )

    def _show_chosen(self) -> None:
        if (source := self.choice.value) is not None:
            self.switch_button.description = "Disable" if source.enabled else "Enable"


def _label(source: SourceInfo) -> str:
    state = "" if source.enabled else ", disabled"
    place = render.plain(source.location, render.TITLE_LENGTH)
    return f"{source_label(source.type)}: {place} ({pluralize(source.documents)}{state})"


MAX_PROBLEMS = 100
_TEMPLATE = "ingest.html.j2"


def counts(report: IngestReport, place: str, seconds: float) -> str:
    numbers = {name: getattr(report, name) for name in ("new", "changed", "same", "gone")}
    numbers |= {"failed": len(report.failed), "skipped": len(report.skipped)}
    total = sum(numbers.values())
    pace = f"{total / seconds:.1f} pages/s" if total and seconds > 0.05 else ""
    location = plain(place, PATH_LENGTH)
    return render.fill_template(_TEMPLATE, "counts", numbers=numbers, pace=pace, place=location)


def problems(failed: Sequence[Problem], skipped: Sequence[Problem]) -> str:
    """List failed and skipped items with reasons, the last first; ``""`` for none."""
    listed = [
        (kind, plain(each.uri, TITLE_LENGTH), plain(each.reason, PATH_LENGTH))
        for kind, items in (("failed", failed), ("skipped", skipped))
        for each in reversed(items)
    ]
    if not listed:
        return ""
    return render.fill_template(
        _TEMPLATE,
        "problems",
        title=pluralize(len(listed), "problem"),
        listed=listed[:MAX_PROBLEMS],
        left_out=len(listed) - MAX_PROBLEMS,
    )


def summary(report: IngestReport, seconds: float) -> str:
    total = report.new + report.changed + report.same
    documents = pluralize(total, "document")
    duration = f"{seconds:.1f} s" if seconds < 60 else f"{seconds / 60:.1f} min"
    if report.interrupted:
        return f"Stopped after {duration}: {documents} kept. Start again to continue."
    if report.nothing_read:
        return f"Done in {duration}, but nothing could be read: see the problems below."
    changed = f"{report.new + report.changed:,} of them new or changed"
    return f"Done in {duration}: {documents} read, {changed}."


class IngestPanel(JobPanel):
    """Reads sources and uploaded files into a knowledge base, with live counts.

    ::

        panel = IngestPanel(workspace)   # or one knowledge base
        panel                            # at the end of a cell: shows it
        panel.report                     # in a later cell: the report of the last work

    The work runs in a thread. After a cancellation, documents that were read stay, and the next
    start continues. Errors appear in the status line, skipped and failed documents with reasons in
    a list. ``running`` and ``report`` can be observed like every trait of a widget.

    Attributes:
        running: Whether work is running.
        report: Report of the last work, or ``None``.
        error: The last error, or ``None``.
        kb_box: Choice of the knowledge base; a new name creates one. ``None`` if there is only one.
        type_box: The type of the source.
        form: The fields of that type.
        upload: Takes files from the reader's machine.
        embedding_box: Embedder of a new knowledge base.
        kept: The sources of the knowledge base; see `KeptSources`.
    """

    report = Any(None, help="Result of the last work.")

    def __init__(self, target: AnyTarget, *, base: str | Path = ".") -> None:
        self._selector = KnowledgeBaseSelector(target, offer_new=True)
        super().__init__(self._selector.home, "ingest", "Stop; documents read so far stay")
        self.kb_box = self._selector.box
        self._base = base
        self._began = 0.0
        self._models = source_models()
        self._forms: dict[str, SourceForm] = {}
        kinds = [(source_label(kind), kind) for kind in self._models]
        self.type_box = controls.make(widgets.Dropdown, "Source", options=kinds)
        self.type_box.observe(lambda _change: self._show_form(), "value")
        self._form_box = widgets.VBox().add_class("kbkit-form")
        self.start_button = controls.button("Start", "Read the source", self.start)
        self.start_button.add_class("kbkit-primary")
        hint = "Read all sources of the knowledge base again"
        self.refresh_button = controls.button("Refresh all", hint, self.refresh)
        self.upload = controls.make(
            widgets.FileUpload,
            "Upload files",
            tooltip="Files from your computer: Markdown, text, HTML, PDF, DOCX and more; Jupyter "
            "takes up to 10 MB at once",
            multiple=True,
        )
        self.upload.observe(self._on_upload, "value")
        embedders = [
            ("Automatic: MiniLM if small", "auto"),
            ("Static vectors: fast", "static"),
            ("MiniLM: better, slower", "minilm"),
        ]
        self.embedding_box = controls.make(widgets.Dropdown, "Embedder if new", options=embedders)
        if self.kb_box is None:
            controls.show(self.embedding_box, visible=False)
        else:
            self.kb_box.observe(lambda _change: self._show_kept(), "value")
        self.kept = KeptSources(self, self._present)
        self._counts = widgets.HTML()
        self._problems = widgets.HTML()
        self.fill(
            [
                controls.row(self.kb_box, self.embedding_box, self.type_box),
                self._form_box,
                controls.buttons(
                    self.start_button, self.cancel_button, self.refresh_button, self.upload
                ),
                self.status_line,
                self._counts,
                self._problems,
                self.kept,
            ]
        )
        self._show_form()
        self.say("Choose a source and start, or upload files.")
        self._show(IngestReport(), "", 0.0)

    @property
    def form(self) -> SourceForm:
        """The fields of the chosen type of source."""
        kind = self.type_box.value
        if kind not in self._forms:
            self._forms[kind] = SourceForm(self._models[kind])
        return self._forms[kind]

    def start(self) -> None:
        """Read the source that the form describes; returns at once."""
        with self.show_errors():
            source = self.form.source()
            self._ingest(
                f"Reading {getattr(source, 'type', 'the source')}",
                lambda kb, on_progress, stop: kb.ingest(
                    source, base=self._base, on_progress=on_progress, stop=stop
                ),
            )

    def refresh(self) -> None:
        """Read all sources of the knowledge base again; returns at once."""
        with self.show_errors():
            self._ingest(
                "Refreshing",
                lambda kb, on_progress, stop: kb.refresh(on_progress=on_progress, stop=stop),
                may_create=False,
            )

    def add_files(self, files: Sequence[tuple[str, bytes]]) -> None:
        """Ingest files by name and content, replacing those with the same name; returns at once."""
        with self.show_errors():
            self._ingest(
                "Reading files",
                lambda kb, on_progress, stop: add_files(kb, files, on_progress, stop),
            )

    def wait(self, timeout: float | None = None) -> IngestReport | None:
        """Wait up to ``timeout`` seconds until the work is done; return the report if any."""
        self._join(timeout)
        return None if self.running else self.report

    # Controls

    def _show_form(self) -> None:
        self._form_box.children = (self.form,)

    def _on_upload(self, change: Bunch) -> None:
        files = [(str(item["name"]), bytes(item["content"])) for item in change["new"]]
        if files:
            self.upload.value = ()  # so that the same file can be uploaded again
            self.add_files(files)

    def _update(self, topic: Topic) -> None:
        if topic == "knowledge_bases":
            self._selector.offer()
        self._show_kept()

    def _present(self) -> KnowledgeBase | None:
        workspace, name = self._selector.workspace, self._selector.name
        if not name or (workspace is not None and name not in workspace):
            return None
        return self._selector.find(name)

    def _show_kept(self) -> None:
        with self.show_errors():
            self.kept.refresh()

    # Work

    def _ingest(self, title: str, ingest: Ingest, *, may_create: bool = True) -> None:
        if self.running:
            raise ConfigError("work is already running; wait for it, or cancel it first")
        if not (name := self._selector.name):
            raise ConfigError("name a knowledge base: an existing one, or a new one")

        def job() -> None:
            is_new = may_create and self._make(name)
            report = IngestReport()
            try:
                kb = self._selector.find(name)
                report = ingest(kb, self._on_progress, self._cancelled.is_set)
            finally:
                dropped = is_new and not report.interrupted and self._drop_empty(name)
            seconds = time.monotonic() - self._began
            self._show(report, "", seconds)
            note = f" {name} was not created." if dropped else ""
            self.announce(summary(report, seconds) + note)
            self.report = report

        self.report = self.error = None
        self._began = time.monotonic()
        self.say(f"{title}…")
        self._show(IngestReport(), "", 0.0)
        self._start(job)

    def _make(self, name: str) -> bool:
        """Create a knowledge base unless it exists; return whether it was created."""
        workspace = self._selector.workspace
        if workspace is None or name in workspace:
            return False
        workspace.create(name, embedding=self.embedding_box.value)
        self.publish("knowledge_bases")
        return True

    def _drop_empty(self, name: str) -> bool:
        """Delete a knowledge base that stayed empty; return whether it did."""
        workspace = self._selector.workspace
        if workspace is None or len(workspace[name].documents):
            return False
        workspace.delete(name, forever=True)
        self.publish("knowledge_bases")
        return True

    def _run(self, job: Callable[[], None]) -> None:
        super()._run(job)
        self.publish("documents")

    def _on_progress(self, progress: Progress) -> None:
        if self._is_due() and progress.so_far is not None:
            seconds = time.monotonic() - self._began
            self._show(progress.so_far, progress.message, seconds)

    def _set_running(self, running: bool) -> None:
        controls.enable(self, not running)
        if not running:
            self._selector.offer()
            self._show_kept()
        super()._set_running(running)

    # Display

    def _show(self, report: IngestReport, place: str, seconds: float) -> None:
        self._counts.value = counts(report, place, seconds)
        html = problems(report.failed, report.skipped)
        if html != self._problems.value:
            self._problems.value = html
