"""Resolve ``$ref`` in API descriptions, and write JSON schemas (OpenAPI 3.0 and 3.1) as text.

References lead to the description itself and to files next to it.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from kbkit.paths import bytes_of
from kbkit.sources.decode import binary_kind, decode
from kbkit.sources.markdown.lines import block_markdown, inline_markdown, with_label
from kbkit.sources.untrusted import load_values
from kbkit.text.markdown.writing import code_span, escape

_CHAIN = 20  # maximum number of references in a row
_FILES = 200
_FILE_BYTES = 50_000_000


@dataclass(frozen=True, slots=True)
class Node:
    """A part of a description and its file; references are resolved.

    Attributes:
        file: Path of its file, or ``None`` for the description itself.
        name: Last part of the reference that led here, or ``""``.
        ref: Absolute reference that led here; ``""`` for an inline part.
    """

    value: Any
    references: References
    file: Path | None = None
    name: str = ""
    ref: str = ""

    def __bool__(self) -> bool:
        """Whether it has content or a name."""
        return bool(self.value or self.name)

    @property
    def members(self) -> dict[str, Any]:
        """The members of a mapping, unresolved; ``{}`` for other values."""
        return self.value if isinstance(self.value, dict) else {}

    def get(self, key: str) -> Node:
        """Return a member; its value is ``None`` if it is missing."""
        return self.references.resolve(self.members.get(key), self.file)

    def items(self) -> list[tuple[str, Node]]:
        """Return the members of a mapping; ``[]`` for other values."""
        return [(str(key), self.get(key)) for key in self.members]

    def parts(self) -> list[Node]:
        """Return the members of a list; ``[]`` for other values."""
        values = self.value if isinstance(self.value, list) else []
        return [self.references.resolve(value, self.file) for value in values]

    def flag(self, key: str) -> bool:
        return self.members.get(key) is True

    def text(self, key: str) -> str:
        """Return a text or number as one line; ``""`` for other values."""
        value = self.members.get(key)
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            return ""
        return " ".join(str(value).split())[:1000]

    def line(self, key: str = "description") -> str:
        """Return a text as one line of Markdown."""
        return inline_markdown(self.members.get(key))

    def block(self, level: int) -> str:
        """Return the description as Markdown, with headings from a level on."""
        return block_markdown(self.members.get("description"), level)


@dataclass(slots=True)
class References:
    """The references of one description."""

    root: Any
    path: Path | None = None
    problems: dict[str, str] = field(default_factory=dict)
    _files: dict[Path, Any] = field(default_factory=dict)

    def resolve(self, value: Any, file: Path | None = None, followed: int = 0) -> Node:
        """Return a part, or the target of its ``$ref``.

        Members next to a ``$ref`` override those of the target. A broken reference is noted in
        ``problems`` and gives an empty mapping.
        """
        node = Node(value, self, file)
        ref = node.members.get("$ref")
        if not isinstance(ref, str):
            return node
        target = self._follow(ref, file)
        if followed < _CHAIN:
            node = self.resolve(target.value, target.file, followed + 1)
        else:
            self.problems.setdefault(ref, "references that lead in a circle")
            node = Node({}, self, target.file)
        siblings = {key: inner for key, inner in value.items() if key != "$ref"}
        if isinstance(node.value, dict) and siblings:
            node = replace(node, value={**node.value, **siblings})
        return replace(node, name=target.name, ref=target.ref)

    def _follow(self, ref: str, file: Path | None) -> Node:
        place, _, pointer = ref.partition("#")
        name = _key(pointer.rpartition("/")[2])
        target = file
        try:
            if place:
                target = self._file(place, file)
                name = name or Path(place).stem
            value = self.root if target is None else self._load(target)
            for part in map(_key, pointer.split("/")[1:]):
                value = value[int(part)] if isinstance(value, list) else value[part]
        except (LookupError, TypeError, ValueError) as error:
            reason = error if isinstance(error, ValueError) else "leads nowhere"
            self.problems.setdefault(ref, f"{ref}: {reason}")
            return Node({}, self, target, name, ref)
        return Node(value, self, target, name, f"{target or ''}#{pointer}")

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
            self._files[path] = load_values(read_text(path))
        return self._files[path]


def read_text(path: Path) -> str:
    """Return the text of a file of a description; raise `ValueError` with a reason."""
    try:
        data = bytes_of(path, _FILE_BYTES + 1)
    except OSError as error:
        raise ValueError(f"cannot be read ({error.strerror})") from None
    if len(data) > _FILE_BYTES:
        raise ValueError(f"larger than {_FILE_BYTES / 1e6:g} MB")
    return decode_description(data)


def decode_description(data: bytes, charset: str = "") -> str:
    if kind := binary_kind(data):
        raise ValueError(f"{kind}, not JSON or YAML")
    return decode(data, charset, markup=False)


_LINES = 300  # of one schema; deeper fields are in the documents of their schemas
_DEEP = 4
_WORK = 20_000  # schemas visited for one document; nested variants multiply
_EXAMPLE_PARTS = 300
_EXAMPLE_DEEP = 6
_WORDS = tomllib.loads(Path(__file__).with_name("words.toml").read_text("utf-8"))


class Schemas:
    """Writes schemas; `begin` starts a document, whose work is bounded."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        self._budget = _WORK

    # --- text ---------------------------------------------------------------------------------

    def lines(self, schema: Node) -> list[str]:
        """Write a schema as lines of a nested list; its fields or variants are the first level."""
        lines = list(islice(self._members(schema, 0, ()), _LINES))
        return lines if len(lines) < _LINES else [*lines, "-   … and more, see the schemas"]

    def summary(self, schema: Node) -> str:
        """Write type, limits, values and description of a schema as inline Markdown."""
        return ". ".join(filter(None, (self.kind(schema), self.notes(schema))))

    def kind(self, schema: Node, depth: int = 0) -> str:
        self._budget -= 1
        if self._budget < 0:
            return "…"
        if schema.name:
            return code_span(schema.name) + (" or null" if schema.flag("nullable") else "")
        value = schema.members
        if not value:
            return "nothing" if schema.value is False else "anything"
        if depth > _DEEP:
            return "…"
        for key, words in (("oneOf", "one of "), ("anyOf", "any of "), ("allOf", "")):
            if variants := schema.get(key).parts():
                kinds = list(dict.fromkeys(self.kind(part, depth + 1) for part in variants[:20]))
                joint = ", " if words else " and "
                return words * (len(kinds) > 1) + joint.join(kinds)
        types = [part for part in _as_list(value.get("type")) if isinstance(part, str)]
        types = types or [_type_by_keys(value)]
        if schema.flag("nullable") and "null" not in types:
            types.append("null")
        text = " or ".join(self._type_of(name, schema, depth) for name in types)
        shape = schema.text("format") or schema.text("contentMediaType")
        return f"{text}, {escape(shape)}" if shape else text

    def _type_of(self, name: str, schema: Node, depth: int) -> str:
        if name == "array":
            items = schema.get("items")
            return f"array of {self.kind(items, depth + 1)}" if items else "array"
        if name == "object" and isinstance(schema.members.get("additionalProperties"), dict):
            inner = self.kind(schema.get("additionalProperties"), depth + 1)
            return f"object of {inner}{' beside its fields' if schema.get('properties') else ''}"
        return escape(name)

    def notes(self, schema: Node) -> str:
        """Write limits, values and description of a schema as inline Markdown."""
        value = schema.members
        parts = [schema.line("description") or schema.line("title")]
        parts += [words for key, words in _WORDS["flags"].items() if schema.flag(key)]
        items = schema.get("items")
        values = value.get("enum") or (None if items.name else items.members.get("enum"))
        if isinstance(values, list) and values:
            more = f" and {len(values) - 60} more" if len(values) > 60 else ""
            parts.append("One of " + ", ".join(_literal(part) for part in values[:60]) + more + ".")
        for key, words in (("const", "Always"), ("default", "Default"), ("example", "Example")):
            if key in value and not (key == "example" and isinstance(value[key], (dict, list))):
                parts.append(f"{words}: {_literal(value[key])}.")
        limits = [
            f"{words} {_literal(value[key])}"
            for key, words in _WORDS["limits"].items()
            # in 3.0, exclusiveMinimum is a flag, not a number
            if isinstance(value.get(key), (int, float, str)) and not isinstance(value[key], bool)
        ]
        if limits:
            parts.append("; ".join(limits).capitalize() + ".")
        return " ".join(filter(None, parts))

    def _members(self, schema: Node, depth: int, outer: tuple[str, ...]) -> Iterator[str]:
        if depth >= _DEEP or (schema.ref and schema.ref in outer):
            return  # too deep, or recursive: its fields are above
        # fields of the schemas that it extends are among its own
        extended = (part.ref for part in schema.get("allOf").parts())
        outer = (*outer, *filter(None, (schema.ref, *extended)))
        pad = "    " * depth
        for name, inner, required in self._fields(schema):
            label = code_span(name) if name else "any other name"
            head = f"{pad}-   {label} ({self.kind(inner)}{', required' if required else ''})"
            yield with_label(head, self.notes(inner))
            yield from self._members(inner, depth + 1, outer)
        for key, words in (("oneOf", "One of"), ("anyOf", "Any of")):
            variants = schema.get(key).parts()
            if len(variants) == 1:
                yield from self._members(variants[0], depth, outer)
            elif variants:
                name = code_span(schema.get("discriminator").text("propertyName"))
                yield f"{pad}-   {words}:" + (f" told apart by {name}" if name else "")
                for variant in variants[:40]:
                    head = f"{pad}    -   {self.kind(variant)}"
                    yield with_label(head, self.notes(variant))
                    yield from self._members(variant, depth + 2, outer)
        if items := schema.get("items"):
            yield from self._members(items, depth, outer)

    def _fields(self, node: Node) -> list[tuple[str, Node, bool]]:
        """Return the properties, and whether they are required; additional ones without a name."""
        properties: dict[str, Node] = {}
        required: set[str] = set()
        extra: list[Node] = []
        pending = [node]
        seen: set[int] = set()
        while pending and len(seen) < 200:
            schema = pending.pop(0)
            if id(schema.value) in seen:
                continue
            seen.add(id(schema.value))
            required.update(map(str, _as_list(schema.members.get("required"))))
            for name, inner in schema.get("properties").items():
                properties.setdefault(name, inner)
            additional = schema.get("additionalProperties")
            if additional and isinstance(additional.value, dict):
                extra.append(additional)
            pending += schema.get("allOf").parts()
        members = [(name, inner, name in required) for name, inner in properties.items()]
        return members + [("", additional, False) for additional in extra[:1]]

    # --- examples -----------------------------------------------------------------------------

    def example(self, schema: Node, leave_out: str = "") -> Any:
        self._parts = _EXAMPLE_PARTS
        return self._example(schema, (), leave_out)

    def _example(self, schema: Node, outer: tuple[str, ...], leave_out: str) -> Any:
        value = schema.members
        self._parts -= 1
        if not value or self._parts < 0 or schema.ref in outer:
            return None
        if schema.ref:
            outer = (*outer, schema.ref)
        examples = [value[key] for key in ("example", "const", "default") if key in value]
        lists = (value.get(key) for key in ("examples", "enum"))
        examples += [values[0] for values in lists if isinstance(values, list) and values]
        if examples:
            return examples[0]
        for variant in (*schema.get("oneOf").parts(), *schema.get("anyOf").parts()):
            if variant.value not in ({"type": "null"}, {}):
                return self._example(variant, outer, leave_out)
        types = [part for part in _as_list(value.get("type")) if part != "null"]
        kind = types[0] if types and isinstance(types[0], str) else _type_by_keys(value)
        if kind == "object" or (kind == "anything" and value.get("allOf")):
            if len(outer) > _EXAMPLE_DEEP:
                return {}
            members = self._fields(schema)
            if not members and (extended := schema.get("allOf").parts()):
                return self._example(extended[0], outer, leave_out)
            return {
                name or "name": self._example(inner, outer, leave_out)
                for name, inner, _ in members[:40]
                if not inner.flag(leave_out)
            }
        if kind == "array":
            inner = None
            if len(outer) <= _EXAMPLE_DEEP:
                inner = self._example(schema.get("items"), outer, leave_out)
            return [] if inner is None else [inner]
        if kind in ("integer", "number"):
            least = value.get("minimum")
            return least if isinstance(least, (int, float)) else 1
        if kind in ("string", "anything"):
            return _WORDS["samples"].get(str(value.get("format")), "string")
        return True if kind == "boolean" else None


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


def _as_list(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _key(part: str) -> str:
    return unquote(part).replace("~1", "/").replace("~0", "~")


def _literal(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return code_span(text[:300]) or '`""`'
