"""Convert llama-index documents to documents of a knowledge base.

llama-index is not imported: documents and nodes are recognised by their attributes or are
dictionaries of ``to_dict``.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from kbkit.models import DocumentType, SourceDocument
from kbkit.models.values import without_nul
from kbkit.sources import Outcome, SourceEvent, public_uri
from kbkit.sources.formats import FORMATS
from kbkit.sources.parts import json_value, with_front_matter

_URLS = ("url", "URL", "source_url", "page_url", "link", "source")
_PATHS = ("file_path", "path", "source")
_PAGES = ("page_label", "page_number", "page")
_DROPPED = ("last_accessed_date",)  # changed by reading
_RANDOM_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
_SOURCE = "1"  # relationship of a node to its document


@dataclass(frozen=True, slots=True)
class _Part:
    """A reader's document, a page of one, or a node of one.

    Attributes:
        id: Its id; for a node, its document's.
        start: Offset in its document; -1 if unknown.
    """

    id: str
    text: str
    metadata: Mapping[str, Any]
    start: int
    end: int


def document_events(items: Iterable[Any], base: Path) -> Iterator[SourceEvent]:
    """Yield events for documents and nodes of llama-index.

    Parts of one address or file become one document: numbered pages in order, other parts as given.
    Its URI is the first of: an ``http`` address in its metadata (``url`` and the like),
    ``file_path`` relative to the base folder (or the user's), an id that is not random,
    ``file_name``, a hash of the text.
    """
    parts_of: dict[str, list[_Part]] = {}
    for number, item in enumerate(items, 1):
        if isinstance(item, SourceDocument):
            yield SourceEvent(item.uri, Outcome.FETCHED, item)
            continue
        try:
            part = _part(item)
        except (ValueError, RecursionError) as error:
            reason = "metadata nested too deeply" if isinstance(error, RecursionError) else error
            yield SourceEvent(f"document {number}", Outcome.SKIPPED, reason=str(reason))
        else:
            key = _uri_of(part, base) or part.id or f"document {number}"
            parts_of.setdefault(key, []).append(part)
    for key, parts in parts_of.items():
        yield _event(_uri_of(parts[0], base), key, parts, base)


def _part(item: Any) -> _Part:
    item = getattr(item, "node", item)  # drop the score
    values = item.to_dict() if hasattr(item, "to_dict") else item
    if not isinstance(values, Mapping):
        raise ValueError(f"not a llama-index document, but {type(item).__name__}")
    resource = values.get("text_resource") or {}
    text = values.get("text") or resource.get("text") or ""
    metadata = values.get("metadata") or values.get("extra_info") or {}
    if not isinstance(text, str) or not isinstance(metadata, Mapping):
        raise ValueError("not a llama-index document: text or metadata has the wrong type")
    source = (values.get("relationships") or {}).get(_SOURCE) or {}
    ids = (source.get("node_id"), *(values.get(name) for name in ("id_", "doc_id", "id")))
    return _Part(
        id=without_nul(str(next((id_ for id_ in ids if id_), ""))),
        text=without_nul(text),
        metadata=json_value(metadata),
        start=_offset(values.get("start_char_idx")),
        end=_offset(values.get("end_char_idx")),
    )


def _uri_of(part: _Part, base: Path) -> str:
    for value in _texts(part.metadata, _URLS):
        if value.startswith(("http://", "https://")):
            return value
    for value in _texts(part.metadata, _PATHS):
        if "/" in value or "." in value:  # for some readers, the source is a page number
            return public_uri(value, base)
    if part.id and not _RANDOM_ID.fullmatch(part.id):
        return part.id
    return next(_texts(part.metadata, ("file_name",)), "")


def _event(place: str, key: str, parts: Sequence[_Part], base: Path) -> SourceEvent:
    text = _join_pages(parts)
    uri = place or f"text:{hashlib.blake2b(text.encode(), digest_size=16).hexdigest()}"
    document = _document(uri, text, parts, base)
    if any(part.text.strip() for part in parts) and document.content:
        return SourceEvent(uri, Outcome.FETCHED, document)
    return SourceEvent(place or key, Outcome.SKIPPED, reason="contains no text")


def _join_pages(parts: Sequence[_Part]) -> str:
    labels = [_label(part.metadata) for part in parts]
    if not all(labels):
        return _run(parts)
    if all(re.fullmatch(r"[0-9]{1,6}", label) for label in labels):
        numbers = [int(label) for label in labels]
    else:  # such as Roman numerals
        numbers = list(range(1, len(parts) + 1))
    pages: dict[int, list[_Part]] = {}
    for number, part in zip(numbers, parts, strict=True):
        pages.setdefault(number, []).append(part)
    return "\n\n".join(f"<!-- page {n} -->\n\n{_run(pages[n])}" for n in sorted(pages))


def _label(metadata: Mapping[str, Any]) -> str:
    keys = (*_PAGES, "source") if "total_pages" in metadata else _PAGES
    for key in keys:
        label = str(metadata.get(key) or "").strip()
        if label.isdecimal() or (label and key == "page_label"):
            return label
    return ""


def _run(parts: Sequence[_Part]) -> str:
    """Join the texts of parts; overlaps of neighbours appear once."""
    text = ""
    previous: _Part | None = None
    for part in parts:
        shared = 0
        joint = "\n\n" if text else ""
        if previous and 0 <= previous.start < part.start <= previous.end:
            shared, joint = previous.end - part.start, ""
        text += joint + part.text[shared:]
        previous = part
    return text


def _document(uri: str, text: str, parts: Sequence[_Part], base: Path) -> SourceDocument:
    first = parts[0].metadata
    metadata = {
        key: value
        for key, value in first.items()
        if key not in _DROPPED and all(part.metadata.get(key) == value for part in parts)
    }
    for key in _PATHS:
        if isinstance(path := metadata.get(key), str):
            metadata[key] = public_uri(path, base)
    name = next(_texts(first, ("file_name",)), uri)
    parsed = with_front_matter(
        text, " ".join(text.split())[:80] if uri.startswith("text:") else name
    )
    title = without_nul(next(_texts(metadata, ("title",)), parsed.title))
    tags = metadata.pop("tags", None)
    labels = tags.split(",") if isinstance(tags, str) else tags if isinstance(tags, list) else ()
    try:
        kind = DocumentType(metadata.pop("document_type", None))
    except ValueError:
        kind = None
    metadata.pop("title", None)
    form = FORMATS.get(PurePosixPath(name.lower()).suffix)
    return SourceDocument(
        uri=uri,
        title=" ".join(title.split())[:500],
        content=parsed.content,
        document_type=kind,
        tags=tuple(dict.fromkeys((*parsed.tags, *(str(tag).strip() for tag in labels if tag)))),
        metadata={**parsed.metadata, **metadata, **({"format": form} if form else {})},
    )


def _texts(metadata: Mapping[str, Any], keys: Sequence[str]) -> Iterator[str]:
    values = (metadata.get(key) for key in keys)
    return (without_nul(value) for value in values if isinstance(value, str) and value.strip())


def _offset(value: Any) -> int:
    return value if isinstance(value, int) else -1
