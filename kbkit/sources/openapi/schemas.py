"""Resolve ``$ref`` in API descriptions, and write JSON schemas (OpenAPI 3.0 and 3.1) as text.

References lead to the description itself and to files next to it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from kbkit.regular_files import bytes_of
from kbkit.sources.decode import decode
from kbkit.sources.markdown.lines import inline_markdown, labelled
from kbkit.sources.untrusted import load_values
from kbkit.text.markdown.writing import code_span, escape

_CHAIN = 20  # most references in a row
_FILES = 200
_FILE_BYTES = 20_000_000


@dataclass(frozen=True, slots=True)
class Node:
    """A part of a description and its file.

    Attributes:
        file: Path of its file, or ``None`` for the description itself.
        name: Last part of the reference that led here, or ``""``.
        ref: Absolute reference that led here; ``""`` for an inline part.
    """

    value: Any
    file: Path | None = None
    name: str = ""
    ref: str = ""

    def get(self, key: str) -> Node:
        """Return a member; ``Node(None)`` if it is missing."""
        value = self.value.get(key) if isinstance(self.value, dict) else None
        return Node(value, self.file)

    def items(self) -> list[tuple[str, Node]]:
        """Return the members of a mapping; ``[]`` for other values."""
        if not isinstance(self.value, dict):
            return []
        return [(str(key), Node(value, self.file)) for key, value in self.value.items()]

    def parts(self) -> list[Node]:
        """Return the members of a list; ``[]`` for other values."""
        if not isinstance(self.value, list):
            return []
        return [Node(value, self.file) for value in self.value]

    def text(self, key: str) -> str:
        """Return a text or number as one line; ``""`` for other values."""
        value = self.value.get(key) if isinstance(self.value, dict) else None
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            return ""
        return " ".join(str(value).split())[:1000]


@dataclass(slots=True)
class References:
    """The references of one description."""

    root: Any
    path: Path | None = None
    problems: dict[str, str] = field(default_factory=dict)
    _files: dict[Path, Any] = field(default_factory=dict)

    def resolve(self, node: Node) -> Node:
        """Return a part, or the target of its ``$ref``.

        Members next to a ``$ref`` override those of the target. A broken reference is noted in
        ``problems`` and gives an empty mapping.
        """
        siblings: dict[str, Any] = {}
        first: Node | None = None
        for _ in range(_CHAIN):
            value = node.value
            if not isinstance(value, dict) or not isinstance(value.get("$ref"), str):
                break
            ref = value["$ref"]
            siblings = {**{k: v for k, v in value.items() if k != "$ref"}, **siblings}
            node = self._follow(ref, node.file)
            first = first or node
        else:
            self.problems.setdefault(node.ref, "references that lead in a circle")
            node = Node({}, node.file)
        if first is None:
            return node
        value = node.value
        if siblings and isinstance(value, dict):
            value = {**value, **siblings}
        return Node(value, node.file, first.name, first.ref)

    def _follow(self, ref: str, file: Path | None) -> Node:
        place, _, pointer = ref.partition("#")
        name = unquote(pointer.rpartition("/")[2]).replace("~1", "/").replace("~0", "~")
        target = file
        try:
            if place:
                target = self._file(place, file)
                name = name or Path(place).stem
            value = self.root if target is None else self._load(target)
            for part in pointer.split("/")[1:]:
                key = unquote(part).replace("~1", "/").replace("~0", "~")
                value = value[int(key)] if isinstance(value, list) else value[key]
        except (LookupError, TypeError, ValueError) as error:
            reason = error if isinstance(error, ValueError) else "leads nowhere"
            self.problems.setdefault(ref, f"{ref}: {reason}")
            return Node({}, target, name, ref)
        return Node(value, target, name, f"{target or ''}#{pointer}")

    def _file(self, place: str, file: Path | None) -> Path | None:
        if self.path is None or urlsplit(place).scheme or place.startswith("//"):
            raise ValueError(
                "leads to another file or address, which is not fetched; put the description into "
                "one file"
            )
        folder = self.path.resolve().parent
        start = folder if file is None else file.parent
        target = (start / unquote(place)).resolve()
        if not target.is_relative_to(folder):
            raise ValueError("leads out of the description's folder")
        return None if target == self.path.resolve() else target

    def _load(self, path: Path) -> Any:
        if path not in self._files:
            if len(self._files) >= _FILES:
                raise ValueError(f"more than {_FILES} files belong to the description")
            self._files[path] = None  # read once, even if it fails
            try:
                data = bytes_of(path, _FILE_BYTES + 1)
                if len(data) > _FILE_BYTES:
                    raise ValueError(f"larger than {_FILE_BYTES / 1e6:g} MB")
                self._files[path] = load_values(decode(data, markup=False))
            except OSError as error:
                raise ValueError(f"cannot be read ({error.strerror})") from None
        return self._files[path]


_LINES = 300  # of one schema; deeper fields are in the documents of their schemas
_DEEP = 4
_WORK = 20_000  # schemas visited for one document; nested variants multiply
_EXAMPLE_PARTS = 300
_EXAMPLE_DEEP = 6
_SAMPLES: dict[str, Any] = {
    "date": "2026-01-31",
    "date-time": "2026-01-31T12:00:00Z",
    "time": "12:00:00Z",
    "duration": "PT1H",
    "email": "name@example.com",
    "uuid": "123e4567-e89b-12d3-a456-426614174000",
    "uri": "https://example.com/",
    "url": "https://example.com/",
    "hostname": "example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "byte": "aGVsbG8=",
    "binary": "...",
    "password": "...",
}


@dataclass(frozen=True, slots=True)
class Field:
    """A property of an object, or its additional properties."""

    name: str
    schema: Node
    required: bool


class Schemas:
    """Writes the schemas of one description."""

    def __init__(self, references: References) -> None:
        self._references = references
        self._left = _WORK

    def begin(self) -> None:
        self._left = _WORK

    # --- text ---------------------------------------------------------------------------------

    def lines(self, node: Node) -> list[str]:
        """Write a schema as lines of a nested list; its fields or variants are the first level."""
        out: list[str] = []
        self._members(node, 0, (), out)
        if len(out) >= _LINES:
            out[_LINES:] = ["-   … and more, see the schemas"]
        return out

    def kind(self, node: Node, depth: int = 0) -> str:
        self._left -= 1
        if self._left < 0:
            return "…"
        schema = self._references.resolve(node)
        if schema.name:
            nullable = " or null" if _true(schema, "nullable") else ""
            return code_span(schema.name) + nullable
        return self._kind(schema, depth)

    def _kind(self, schema: Node, depth: int) -> str:
        value = schema.value
        if value is True or value == {}:
            return "anything"
        if not isinstance(value, dict):
            return "nothing" if value is False else "anything"
        if depth > _DEEP:
            return "…"
        for key, word in (("oneOf", "one of"), ("anyOf", "any of"), ("allOf", "")):
            variants = schema.get(key).parts()
            if variants:
                kinds = list(dict.fromkeys(self.kind(part, depth + 1) for part in variants[:20]))
                if key == "allOf":
                    return " and ".join(kinds)
                return f"{word} {', '.join(kinds)}" if len(kinds) > 1 else kinds[0]
        types = [str(part) for part in _listed(value.get("type")) if isinstance(part, str)]
        if not types:
            types = [_type_by_keys(value)]
        if _true(schema, "nullable") and "null" not in types:
            types.append("null")
        names = []
        for name in types:
            if name == "array":
                items = schema.get("items")
                names.append(f"array of {self.kind(items, depth + 1)}" if items.value else "array")
            elif name == "object" and isinstance(value.get("additionalProperties"), dict):
                inner = self.kind(schema.get("additionalProperties"), depth + 1)
                own = "" if not value.get("properties") else " beside its fields"
                names.append(f"object of {inner}{own}")
            else:
                names.append(escape(name))
        text = " or ".join(names)
        shape = schema.text("format") or schema.text("contentMediaType")
        return f"{text}, {escape(shape)}" if shape else text

    def notes(self, node: Node) -> str:
        """Write limits, values and description of a schema as inline Markdown."""
        schema = self._references.resolve(node)
        value = schema.value
        if not isinstance(value, dict):
            return ""
        parts = [inline_markdown(value.get("description") or value.get("title"))]
        parts += [words for key, words in _MARKS if _true(schema, key)]
        items = self._references.resolve(schema.get("items"))
        values = value.get("enum") or (None if items.name else items.get("enum").value)
        if isinstance(values, list) and values:
            more = f" and {len(values) - 60} more" if len(values) > 60 else ""
            parts.append("One of " + ", ".join(_literal(part) for part in values[:60]) + more + ".")
        for key, words in (("const", "Always"), ("default", "Default"), ("example", "Example")):
            if key in value and not (key == "example" and isinstance(value[key], (dict, list))):
                parts.append(f"{words}: {_literal(value[key])}.")
        limits = [
            f"{words} {_literal(value[key])}"
            for key, words in _LIMITS
            # in 3.0, exclusiveMinimum is a flag, not a number
            if isinstance(value.get(key), (int, float, str)) and not isinstance(value[key], bool)
        ]
        if limits:
            parts.append("; ".join(limits).capitalize() + ".")
        return " ".join(part for part in parts if part)

    def _members(self, node: Node, depth: int, outer: tuple[str, ...], out: list[str]) -> None:
        schema = self._references.resolve(node)
        if schema.ref:
            if schema.ref in outer:
                return  # a circle: its fields are above
            outer = (*outer, schema.ref)
        # fields of the schemas that it extends are among its own
        refs = [
            part.value.get("$ref")
            for part in schema.get("allOf").parts()
            if isinstance(part.value, dict)
        ]
        outer = (*outer, *(f"{schema.file or ''}{ref}" for ref in refs if isinstance(ref, str)))
        if depth >= _DEEP or len(out) >= _LINES:
            return
        pad = "    " * depth
        for member in self.fields(schema):
            if len(out) >= _LINES:
                return
            kind = self.kind(member.schema)
            required = ", required" if member.required else ""
            label = code_span(member.name) if member.name else "any other name"
            head = f"{pad}-   {label} ({kind}{required})"
            out.append(labelled(head, self.notes(member.schema)))
            self._members(member.schema, depth + 1, outer, out)
        for key, words in (("oneOf", "One of"), ("anyOf", "Any of")):
            variants = schema.get(key).parts()
            if len(variants) > 1 and len(out) < _LINES:
                out.append(f"{pad}-   {words}:{self._discriminator(schema)}")
                for variant in variants[:40]:
                    head = f"{pad}    -   {self.kind(variant)}"
                    out.append(labelled(head, self.notes(variant)))
                    self._members(variant, depth + 2, outer, out)
            elif variants:
                self._members(variants[0], depth, outer, out)
        items = schema.get("items")
        if items.value:
            self._members(items, depth, outer, out)

    def _discriminator(self, schema: Node) -> str:
        name = schema.get("discriminator").text("propertyName")
        return f" told apart by {code_span(name)}" if name else ""

    def fields(self, node: Node) -> list[Field]:
        properties: dict[str, Node] = {}
        required: set[str] = set()
        extra: list[Node] = []
        waiting = [node]
        seen: set[int] = set()
        while waiting and len(seen) < 200:
            schema = self._references.resolve(waiting.pop(0))
            if id(schema.value) in seen:
                continue
            seen.add(id(schema.value))
            if not isinstance(schema.value, dict):
                continue
            required.update(str(name) for name in _listed(schema.value.get("required")))
            for name, inner in schema.get("properties").items():
                properties.setdefault(name, inner)
            other = schema.get("additionalProperties")
            if isinstance(other.value, dict) and other.value:
                extra.append(other)
            waiting += schema.get("allOf").parts()
        members = [Field(name, inner, name in required) for name, inner in properties.items()]
        return members + [Field("", other, False) for other in extra[:1]]

    # --- examples -----------------------------------------------------------------------------

    def example(self, node: Node, leave_out: str = "") -> Any:
        return self._example(node, (), [_EXAMPLE_PARTS], leave_out)

    def _example(self, node: Node, outer: tuple[str, ...], left: list[int], leave_out: str) -> Any:
        schema = self._references.resolve(node)
        value = schema.value
        left[0] -= 1
        if not isinstance(value, dict) or not value or left[0] < 0 or schema.ref in outer:
            return None
        if schema.ref:
            outer = (*outer, schema.ref)
        stated = _stated_example(value)
        if stated is not _MISSING:
            return stated
        for key in ("oneOf", "anyOf"):
            for variant in schema.get(key).parts():
                if self._references.resolve(variant).value not in ({"type": "null"}, {}):
                    return self._example(variant, outer, left, leave_out)
        types = [part for part in _listed(value.get("type")) if part != "null"]
        kind = types[0] if types and isinstance(types[0], str) else _type_by_keys(value)
        if kind == "object" or (kind == "anything" and value.get("allOf")):
            if len(outer) > _EXAMPLE_DEEP:
                return {}
            members = self.fields(schema)
            if not members and value.get("allOf"):
                return self._example(schema.get("allOf").parts()[0], outer, left, leave_out)
            return {
                member.name or "name": self._example(member.schema, outer, left, leave_out)
                for member in members[:40]
                if not _true(self._references.resolve(member.schema), leave_out)
            }
        if kind == "array":
            if len(outer) > _EXAMPLE_DEEP or not value.get("items"):
                return []
            inner = self._example(schema.get("items"), outer, left, leave_out)
            return [] if inner is None else [inner]
        return _sample(kind, value)


_MISSING = object()
_MARKS = (("deprecated", "Deprecated."), ("readOnly", "Read only."), ("writeOnly", "Write only."))
_LIMITS = (
    ("minimum", "at least"),
    ("exclusiveMinimum", "more than"),
    ("maximum", "at most"),
    ("exclusiveMaximum", "less than"),
    ("multipleOf", "a multiple of"),
    ("minLength", "shortest length"),
    ("maxLength", "longest length"),
    ("pattern", "pattern"),
    ("minItems", "fewest items"),
    ("maxItems", "most items"),
)


def _stated_example(value: dict[str, Any]) -> Any:
    for key in ("example", "const", "default"):
        if key in value:
            return value[key]
    for key in ("examples", "enum"):
        if isinstance(value.get(key), list) and value[key]:
            return value[key][0]
    return _MISSING


def _sample(kind: str, value: dict[str, Any]) -> Any:
    if kind in ("integer", "number"):
        least = value.get("minimum")
        return least if isinstance(least, (int, float)) else 1
    if kind == "boolean":
        return True
    if kind in ("string", "anything"):
        return _SAMPLES.get(str(value.get("format")), "string")
    return None


def _type_by_keys(value: dict[str, Any]) -> str:
    if "properties" in value or "additionalProperties" in value:
        return "object"
    if "items" in value:
        return "array"
    values = value.get("enum")
    if "const" in value:
        values = [value["const"]]
    if isinstance(values, list) and values and all(isinstance(part, str) for part in values):
        return "string"
    return "anything"


def _listed(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _true(node: Node, key: str) -> bool:
    return isinstance(node.value, dict) and node.value.get(key) is True


def _literal(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return code_span(text[:300]) or '`""`'
