"""A panel that brings documents into knowledge bases, and shows how that goes."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import ipywidgets as widgets
from traitlets import Any, Bool, Bunch

from kbkit.errors import ConfigError, NotFoundError, SourceError
from kbkit.models import IngestReport, Problem, Progress
from kbkit.panels import events, render
from kbkit.panels.ingest.source_form import SourceForm, source_label, source_models
from kbkit.panels.status_line import StatusLine, button

if TYPE_CHECKING:
    from kbkit.knowledge_base import KnowledgeBase
    from kbkit.progress import OnProgress
    from kbkit.workspace import Workspace

_EVERY = 0.2
"""Seconds between two changes of the counts."""

Job = Callable[["OnProgress", Callable[[], bool]], IngestReport]


class IngestPanel(widgets.VBox):  # type: ignore[misc]  # ipywidgets has no types
    """Reads sources and uploaded files into a knowledge base, with live counts.

    ::

        panel = IngestPanel(workspace)   # or one knowledge base
        panel                            # at the end of a cell: shows it
        panel.report                     # in a later cell: what the last work did

    The work runs in a thread of its own, so that cells and other panels go on. Cancel ends it
    cleanly: what was read stays, and the next start goes on from there. Errors appear in the
    status line; what was skipped or failed is listed with its reason. ``running`` and ``report``
    can be observed like every trait of a widget.

    Attributes:
        running: Whether work is under way.
        report: What the last work did, or ``None``.
        error: What went wrong last, or ``None``.
        kb_box: Which knowledge base; a new name makes one. ``None`` when the panel has but one.
        type_box: The type of the source.
        form: The fields of that type.
        start_button: Reads the source.
        refresh_button: Reads all sources of the knowledge base again.
        cancel_button: Ends the work.
        upload: Takes files from the reader's machine.
    """

    running = Bool(False, help="Whether work is under way.")
    report = Any(None, help="What the last work did.")

    def __init__(self, target: Workspace | KnowledgeBase, *, base: str | Path = ".") -> None:
        """Make a panel.

        Args:
            target: Where documents go: a knowledge base, or a workspace whose knowledge bases
                can be chosen and made.
            base: Folder that relative paths start from.
        """
        from kbkit.workspace import Workspace

        self._workspace = target if isinstance(target, Workspace) else None
        self._kb = None if isinstance(target, Workspace) else target
        self._place: Path = target.path
        self._base = base
        self._loop: asyncio.AbstractEventLoop | None = None
        self._made = False  # a knowledge base, by the work under way
        self._cancel = threading.Event()
        self._thread: threading.Thread | None = None
        self._began = 0.0
        self._shown = 0.0
        self.error: Exception | None = None

        self._models = source_models()
        self._forms: dict[str, SourceForm] = {}
        options = [(source_label(kind), kind) for kind in self._models]
        self.type_box = widgets.Dropdown(
            description="Source", options=options, layout=widgets.Layout(width="auto")
        )
        self.type_box.observe(self._chosen_type, "value")
        self.kb_box: widgets.Combobox | None = None
        if self._workspace is not None:
            names = list(self._workspace)
            self.kb_box = widgets.Combobox(
                description="Knowledge base",
                options=names,
                value=names[0] if names else "",
                placeholder="Choose one, or name a new one",
                layout=widgets.Layout(width="auto"),
            )
        self._form_box = widgets.VBox().add_class("kbkit-form")
        self.start_button = button("Start", "Read the source", self.start)
        self.start_button.add_class("kbkit-primary")
        self.refresh_button = button(
            "Refresh all", "Read all sources of the knowledge base again", self.refresh
        )
        self.cancel_button = button("Cancel", "End the work; what was read stays", self.cancel)
        self.cancel_button.disabled = True
        self.upload = widgets.FileUpload(
            description="Upload files",
            tooltip="Files of your machine: Markdown, text, HTML, PDF, DOCX and more; Jupyter "
            "takes up to 10 MB at once",
            multiple=True,
            layout=widgets.Layout(width="auto"),
        )
        self.upload.observe(self._uploaded, "value")
        boxes = [box for box in (self.kb_box, self.type_box) if box is not None]
        actions = [self.start_button, self.cancel_button, self.refresh_button, self.upload]
        self._status = StatusLine()
        self._counts = widgets.HTML()
        self._problems = widgets.HTML()
        super().__init__(
            [
                widgets.HTML(render.stylesheet(), layout=widgets.Layout(display="none")),
                widgets.HBox(boxes).add_class("kbkit-controls"),
                self._form_box,
                widgets.HBox(actions).add_class("kbkit-buttons"),
                self._status,
                self._counts,
                self._problems,
            ]
        )
        self.add_class("kbkit-panel")
        self.add_class("kbkit-ingest")
        self._show_form()
        self._say("Choose a source and start, or upload files.")
        self._show(IngestReport(), "", 0.0)
        events.listen(self._place, self._heard)

    @property
    def form(self) -> SourceForm:
        """The fields of the chosen type of source."""
        kind = self.type_box.value
        if kind not in self._forms:
            self._forms[kind] = SourceForm(self._models[kind])
        return self._forms[kind]

    def start(self) -> None:
        """Read the source that the form describes; returns at once."""
        try:
            source = self.form.source()
            find = self._finder(make=True)
        except Exception as error:  # a panel has nobody to raise to: it shows what is wrong
            self._fail(error)
            return
        self._run(
            f"Reading {getattr(source, 'type', 'the source')}",
            lambda tell, stop: find().ingest(
                source, base=self._base, on_progress=tell, stop=stop
            ),
        )  # fmt: skip

    def refresh(self) -> None:
        """Read all sources of the knowledge base again; returns at once."""
        try:
            find = self._finder(make=False)
        except Exception as error:  # as in `start`
            self._fail(error)
            return
        self._run("Refreshing", lambda tell, stop: find().refresh(on_progress=tell, stop=stop))

    def add_files(self, files: Sequence[tuple[str, bytes]]) -> None:
        """Read files that came as bytes into the knowledge base; returns at once.

        Args:
            files: Name and content of each. A file of the same name is replaced.
        """
        try:
            find = self._finder(make=True)
        except Exception as error:  # as in `start`
            self._fail(error)
            return
        self._run("Reading files", lambda tell, stop: _add_files(find(), files, tell, stop))

    def cancel(self) -> None:
        """End the work soon and cleanly; what was read stays."""
        if self.running:
            self._cancel.set()
            self.cancel_button.disabled = True
            self._say("Stopping: the page at hand is finished first…")

    def wait(self, timeout: float | None = None) -> IngestReport | None:
        """Wait until the work is done; blocks the cell.

        Args:
            timeout: Most seconds to wait.

        Returns:
            What it did, or ``None`` when it is not done or failed.
        """
        if self._thread is not None:
            self._thread.join(timeout)
        report: IngestReport | None = None if self.running else self.report
        return report

    def close(self) -> None:
        """Take the panel off the page; work under way ends."""
        self._cancel.set()
        super().close()

    # Controls

    def _chosen_type(self, _change: Bunch) -> None:
        self._show_form()

    def _show_form(self) -> None:
        self._form_box.children = (self.form,)

    def _uploaded(self, change: Bunch) -> None:
        files = [(str(item["name"]), bytes(item["content"])) for item in change["new"]]
        if files:
            self.upload.value = ()  # so that the same file can be uploaded again
            self.add_files(files)

    def _finder(self, *, make: bool) -> Callable[[], KnowledgeBase]:
        """Finds the chosen knowledge base, made where there is none; called in the thread.

        Raises:
            ConfigError: None is chosen, or other work is under way.
        """
        if self.running:
            raise ConfigError("work is under way; wait for it, or cancel it first")
        if self._kb is not None:
            kb = self._kb
            return lambda: kb
        assert self.kb_box is not None
        assert self._workspace is not None
        workspace, name = self._workspace, self.kb_box.value.strip()
        if not name:
            raise ConfigError("name a knowledge base: one that is there, or a new one")

        def find() -> KnowledgeBase:
            if make and name not in workspace:
                self._made = True
                return workspace.create(name)
            return workspace[name]

        return find

    # Work

    def _run(self, what: str, job: Job) -> None:
        self._cancel.clear()
        self._made = False
        self.error = None
        self.report = None
        self._began = time.monotonic()
        try:
            self._loop = asyncio.get_running_loop()
        except RuntimeError:  # a script, or a test
            self._loop = None
        self._set_running(True)
        self._say(f"{what}…")
        self._show(IngestReport(), "", 0.0)
        self._thread = threading.Thread(target=self._work, args=(job,), daemon=True)
        self._thread.start()

    def _work(self, job: Job) -> None:
        """Runs in the thread. Never raises."""
        try:
            report = job(self._tell, self._cancel.is_set)
            self._show(report, "", time.monotonic() - self._began)
            self._say(_summary(report, time.monotonic() - self._began))
            self.report = report
        except Exception as error:  # as in `start`
            self._fail(error)
        finally:
            self._set_running(False)
            if self._loop is None:
                self._tell_others()
            else:  # other panels work where the kernel does, not in this thread
                self._loop.call_soon_threadsafe(self._tell_others)

    def _tell_others(self) -> None:
        if self._made:
            events.tell(self._place, "knowledge_bases", but=self)
        events.tell(self._place, "documents", but=self)

    def _heard(self, what: str) -> None:
        """Another panel of the workspace changed something."""
        if what == "knowledge_bases" and self.kb_box is not None and self._workspace is not None:
            self.kb_box.options = list(self._workspace)

    def _tell(self, progress: Progress) -> None:
        now = time.monotonic()
        if now - self._shown < _EVERY:
            return
        self._shown = now
        if progress.so_far is not None:
            self._show(progress.so_far, progress.message, now - self._began)

    def _set_running(self, running: bool) -> None:
        for control in (self.start_button, self.refresh_button, self.upload, self.type_box):
            control.disabled = running
        if self.kb_box is not None:
            self.kb_box.disabled = running
            if not running and self._workspace is not None:
                self.kb_box.options = list(self._workspace)
        self.form.enable(not running)
        self.cancel_button.disabled = not running
        self.running = running

    # What is shown

    def _say(self, text: str) -> None:
        self._status.say(text)

    def _show(self, report: IngestReport, place: str, seconds: float) -> None:
        self._counts.value = render.counts(report, place, seconds)
        problems = render.problems(report.failed, report.skipped)
        if problems != self._problems.value:
            self._problems.value = problems

    def _fail(self, error: Exception) -> None:
        """Show an error in the status line; the counts stay."""
        self.error = error
        self._status.fail(error)


def _add_files(
    kb: KnowledgeBase,
    files: Sequence[tuple[str, bytes]],
    tell: OnProgress,
    stop: Callable[[], bool],
) -> IngestReport:
    from kbkit.sources.disk.files import read_file

    new = changed = same = 0
    skipped: list[Problem] = []
    report = IngestReport()
    for number, (name, data) in enumerate(files, 1):
        if stop():
            return replace(report, interrupted=True)
        try:
            documents = read_file(name, data)
        except SourceError as error:
            skipped.append(Problem(name, str(error).removeprefix(f"{name}: ")))
            documents = []
        for document in documents:
            uri = f"upload:{document.uri}"
            try:
                before = kb.documents[uri].content_hash
            except NotFoundError:
                before = ""
            kb.add(
                document.title,
                document.content,
                source=uri,
                document_type=document.document_type,
                tags=document.tags,
                metadata=document.metadata,
            )
            after = kb.documents[uri].content_hash
            new += not before
            changed += bool(before) and before != after
            same += before == after
        report = IngestReport(
            new=new, changed=changed, same=same, fetched=number, skipped=tuple(skipped)
        )
        tell(Progress("store", number, len(files), name, report))
    return report


def _summary(report: IngestReport, seconds: float) -> str:
    read = report.new + report.changed + report.same
    documents = "1 document" if read == 1 else f"{read:,} documents"
    took = f"{seconds:.1f} s" if seconds < 60 else f"{seconds / 60:.1f} min"
    if report.interrupted:
        return f"Stopped after {took}: {documents} kept. Start again to go on."
    if not read and (report.failed or report.skipped):
        return f"Done in {took}, but nothing could be read: see the problems below."
    return (
        f"Done in {took}: {documents} read, {report.new + report.changed:,} of them new or changed."
    )
