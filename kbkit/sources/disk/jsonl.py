"""The source ``jsonl``: documents that a program wrote, one JSON object a line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kbkit.errors import SourceError
from kbkit.models import DocumentType, SourceDocument
from kbkit.recipes import JsonlSource
from kbkit.sources.base import Outcome, SourceContext, SourceEvent
from kbkit.sources.doctype import detect
from kbkit.sources.places import DiskPlace, published_uri

_KEYS = ("uri", "title", "text", "document_type", "tags", "metadata")
_LONGEST = 50_000_000  # bytes of one line


class JsonlReader:
    """A file of JSON lines.

    Args:
        spec: The part of the recipe that describes it.
    """

    type = "jsonl"
    exhaustive = True

    def __init__(self, spec: JsonlSource) -> None:
        self._spec = spec

    def events(self, context: SourceContext) -> Iterator[SourceEvent]:
        """Read the lines; one that is wrong is skipped with its number and the reason.

        Raises:
            SourceError: The file cannot be read.
        """
        path = context.base / self._spec.path
        place = (context.place or DiskPlace.of(self._spec.path, context.base)).name
        seen: dict[str, int] = {}
        try:
            with path.open("rb") as lines:
                number = 0
                while line := lines.readline(_LONGEST + 1):
                    number += 1
                    if context.stop():
                        return
                    if len(line) > _LONGEST:
                        while line and not line.endswith(b"\n"):
                            line = lines.readline(_LONGEST)
                        reason = f"line {number}: longer than {_LONGEST / 1e6:g} MB"
                        yield SourceEvent(f"{place}:{number}", Outcome.SKIPPED, reason=reason)
                        continue
                    if not line.strip():
                        continue
                    yield self._event(line, path.parent, f"{place}:{number}", number, seen)
        except OSError as error:
            raise SourceError(f"{path}: cannot be read ({error.strerror})") from error

    def _event(
        self, line: bytes, folder: Path, place: str, number: int, seen: dict[str, int]
    ) -> SourceEvent:
        try:
            document = self._document(line, folder)
        except ValueError as error:
            return SourceEvent(place, Outcome.SKIPPED, reason=f"line {number}: {error}")
        if document.uri in seen:
            reason = f"line {number}: uri is the same as in line {seen[document.uri]}"
            return SourceEvent(document.uri, Outcome.SKIPPED, reason=reason)
        seen[document.uri] = number
        return SourceEvent(document.uri, Outcome.FETCHED, document)

    def _document(self, line: bytes, folder: Path) -> SourceDocument:
        try:
            values = json.loads(line.decode("utf-8-sig"))
        except UnicodeDecodeError:
            raise ValueError("not UTF-8") from None
        except json.JSONDecodeError as error:
            raise ValueError(f"not JSON ({error.msg} at column {error.colno})") from None
        except RecursionError:
            raise ValueError("nested too deeply") from None
        if not isinstance(values, dict):
            raise ValueError("not a JSON object")
        unknown = sorted(set(values) - set(_KEYS))
        if unknown:
            raise ValueError(f"unknown key {unknown[0]!r}; the keys are {', '.join(_KEYS)}")
        uri = published_uri(_text(values, "uri"), folder)
        text = _text(values, "text")
        title = " ".join(_text(values, "title", required=False).split()) or uri
        tags = values.get("tags") or []
        if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
            raise ValueError("tags: not a list of texts")
        metadata = values.get("metadata") or {}
        if not isinstance(metadata, dict):
            raise ValueError("metadata: not an object")
        return SourceDocument(
            uri,
            title,
            text,
            self._type(values) or detect(uri, title, text),
            tuple(dict.fromkeys((*self._spec.tags, *tags))),
            metadata,
        )

    def _type(self, values: dict[str, Any]) -> DocumentType | None:
        named = values.get("document_type")
        if named in (None, ""):
            return self._spec.document_type
        try:
            return DocumentType(named)
        except ValueError:
            known = ", ".join(kind.value for kind in DocumentType)
            raise ValueError(f"document_type: {named!r} is none of {known}") from None


def _text(values: dict[str, Any], key: str, *, required: bool = True) -> str:
    value = values.get(key)
    if value is None and not required:
        return ""
    if value is None:
        raise ValueError(f"{key} is missing")
    if not isinstance(value, str):
        raise ValueError(f"{key}: not a text")
    # lone surrogates are valid JSON and can be stored nowhere
    value = value.encode("utf-8", "replace").decode("utf-8").replace("\x00", "")
    if required and not value.strip():
        raise ValueError(f"{key} is empty")
    return value
