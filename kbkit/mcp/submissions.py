"""Documents that an agent submits: texts, objects, or local paths."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Required

from anyio import from_thread
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import TypeAdapter, ValidationError, with_config
from typing_extensions import TypedDict

from kbkit.errors import ConfigError, PathOutsideError, SourceError
from kbkit.models import DocumentType, IngestReport, Problem, Progress, SourceDocument
from kbkit.models.values import fault_reason, without_nul

if TYPE_CHECKING:
    from kbkit.knowledge_base import KnowledgeBase
    from kbkit.mcp.tools import Tools


MAX_DOCUMENTS = 2_000
"""Maximum documents of a call; ``kbkit add`` takes more."""
MAX_CHARACTERS = 50_000_000
"""Maximum characters of all documents, which stay in memory."""
_MAX_PATH_LENGTH = 1_000
_MAX_TITLE_LENGTH = 80
_HEADING = re.compile(r"\s*#{1,6}[ \t]+(.+?)[ \t]*#*[ \t]*(?:\n|\Z)")
_LIST = re.compile(r"""\s*\[\s*["{\[\]]""")
"""Beginning of a JSON list; texts may begin with a link."""
_PATH = re.compile(r"(?:/|~|\.\.?[/\\]|[A-Za-z]:[\\/])[^\n]*|\\\\[^\n]*")
_FILE_NAME = re.compile(r"[^\s<>|*?\"]+(?:\.[A-Za-z][A-Za-z0-9]{0,5}|[/\\][^\s<>|*?\"]*)")
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://\S+", re.IGNORECASE)


@with_config({"extra": "forbid"})
class GivenDocument(TypedDict, total=False):
    """A document with metadata."""

    title: str
    content: Required[str]
    source: str
    document_type: DocumentType
    tags: list[str]
    metadata: dict[str, Any]


_DOCUMENT = TypeAdapter(GivenDocument)


@dataclass(slots=True)
class Submission:
    """Submitted documents by URI, and unreadable items with reasons."""

    documents: dict[str, SourceDocument] = field(default_factory=dict)
    skipped: list[Problem] = field(default_factory=list)
    _characters: int = 0

    def add(self, document: SourceDocument) -> None:
        previous = self.documents.setdefault(document.uri, document)
        if previous is not document and previous.content != document.content:
            raise ConfigError(
                f"documents: two of them have the source {document.uri[:200]!r}; give each its own"
            )
        self._characters += len(document.content)
        if len(self.documents) > MAX_DOCUMENTS or self._characters > MAX_CHARACTERS:
            raise ConfigError(
                f"documents: more than {MAX_DOCUMENTS:,} or {MAX_CHARACTERS:,} characters in one "
                "call; add some at a time, or have a person run `kbkit add`"
            )


def read(documents: Any, tools: Tools, work: LongWork) -> Submission:
    """Parse submitted documents; stores nothing."""
    submission = Submission()
    for item in _items(documents, tools):
        if isinstance(item, SourceDocument):
            submission.add(item)
        else:
            _read_files(item, tools, work, submission)
        if work.cancelled():
            break
    if submission.skipped and not submission.documents:
        reasons = "; ".join(f"{each.uri}: {each.reason}" for each in submission.skipped[:5])
        raise SourceError(f"nothing could be read: {reasons}")
    return submission


def _items(documents: Any, tools: Tools) -> Iterator[SourceDocument | str]:
    if isinstance(documents, str):
        if not _LIST.match(documents):
            yield from _text_documents(documents, "documents", tools)
            return
        try:
            documents = json.loads(documents)
        except (ValueError, RecursionError) as error:
            raise ConfigError(
                f"documents: begins like a JSON list but is not valid ({error})"
            ) from None
    if isinstance(documents, Mapping):
        documents = [documents]
    if not isinstance(documents, list):
        raise ConfigError("documents: give a text, a list of texts or objects, or paths")
    for number, item in enumerate(documents):
        name = f"documents[{number}]"
        if isinstance(item, str):
            yield from _text_documents(item, name, tools)
        elif isinstance(item, Mapping):
            yield _object_document(item, name)
        else:
            raise ConfigError(f"{name}: is neither a text nor an object with content")


def _text_documents(text: str, name: str, tools: Tools) -> Iterator[SourceDocument | str]:
    """Iterate over the document of a text, or over the paths on its lines."""
    text = without_nul(text)
    if not text.strip():
        raise ConfigError(f"{name}: is empty")
    lines = [line.strip() for line in text.strip().splitlines()]
    if all(_is_path(line, tools) for line in lines):
        yield from lines
    elif len(lines) == 1 and _ADDRESS.fullmatch(lines[0]):
        raise ConfigError(
            f"{name}: is an address, which this tool does not fetch; give its text, or have a "
            "person run `kbkit add`"
        )
    else:
        yield SourceDocument(_text_uri(text), _title(text), text)


def _object_document(item: Mapping[str, Any], name: str) -> SourceDocument:
    try:
        fields = _DOCUMENT.validate_python(item)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_input=False, include_context=False)
        fault = max(faults, key=lambda each: "extra" in each["type"])
        location = ".".join(str(part)[:40] for part in fault["loc"])
        message = fault_reason(fault)
        if "extra" in fault["type"]:
            message += f"; there are {', '.join(GivenDocument.__annotations__)}"
        raise ConfigError(f"{name}.{location}: {message}") from None
    content = without_nul(fields["content"])
    if not content.strip():
        raise ConfigError(f"{name}.content: is empty")
    title = " ".join(without_nul(fields.get("title", "")).split())
    source = without_nul(fields.get("source", "")).strip()
    return SourceDocument(
        source or (f"text:{title}" if title else _text_uri(content)),
        title or _title(content),
        content,
        fields.get("document_type"),
        tuple(fields.get("tags", ())),
        fields.get("metadata", {}),
    )


def _title(text: str) -> str:
    heading = _HEADING.match(text)
    first = heading[1] if heading else text.strip().splitlines()[0]
    return " ".join(first.split())[:_MAX_TITLE_LENGTH]


def _text_uri(text: str) -> str:
    """Return a URI for a text without a source: equal texts are one document."""
    return f"text:{hashlib.blake2b(text.encode(), digest_size=16).hexdigest()}"


def _is_path(line: str, tools: Tools) -> bool:
    if len(line) > _MAX_PATH_LENGTH or _ADDRESS.fullmatch(line):
        return False
    if _PATH.fullmatch(line) or _FILE_NAME.fullmatch(line):
        return True
    with suppress(PathOutsideError):
        return " " not in line and bool(tools.rooted_path(line))
    return False


def _read_files(path: str, tools: Tools, work: LongWork, submission: Submission) -> None:
    from kbkit.recipes import FilesSource
    from kbkit.sources import SourceContext, open_reader

    try:
        target, root = tools.rooted_path(path)
    except PathOutsideError as error:
        raise PathOutsideError(f"{error}; put plain text into an object with content") from None
    reader = open_reader(FilesSource(path=str(target), limit=MAX_DOCUMENTS))
    context = SourceContext(stop=work.cancelled, base=root.parent)
    for event in reader.events(context):
        if event.document is not None:
            submission.add(event.document)
        elif event.reason:
            submission.skipped.append(Problem(event.uri, event.reason))
        work.step(event.uri)


def store(
    kb: KnowledgeBase, documents: Mapping[str, SourceDocument], work: LongWork
) -> IngestReport:
    """Add documents to a knowledge base; those stored before a cancellation stay."""
    work.total = work.done + len(documents) + 1

    def notify(progress: Progress) -> None:
        if progress.stage == "store":
            work.step(progress.message)

    report = kb.ingest(
        list(documents.values()), remember=False, on_progress=notify, stop=work.cancelled
    )
    if report.interrupted:
        raise ToolError("cancelled; documents stored before stay")
    work.step("stored")
    return report


_NOTIFY_SECONDS = 0.1


class LongWork:
    """A long-running tool; runs in a thread of the server."""

    def __init__(self, context: Context[Any, Any]) -> None:
        self._context = context
        self.done = 0
        self._notified_at = float("-inf")
        self.total: int | None = None

    def cancelled(self) -> bool:
        """Whether the client has cancelled or left."""
        try:
            from_thread.check_cancelled()
        except asyncio.CancelledError:
            return True
        return False

    def step(self, message: str = "") -> None:
        self.done += 1
        now = time.monotonic()
        if now - self._notified_at < _NOTIFY_SECONDS and self.done != self.total:
            return
        self._notified_at = now
        report = self._context.report_progress
        with suppress(asyncio.CancelledError):  # sets `cancelled`
            from_thread.check_cancelled()
            from_thread.run(report, float(self.done), self.total, message[:200])
