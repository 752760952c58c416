"""JSON and YAML: a heading for each top-level key, values in fences.

JSON is indented. YAML keeps its text and comments: only positions of keys are read, so aliases are
never expanded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from kbkit.sources.decode import decode
from kbkit.sources.parts import GROUP, Part, UnreadableError, one_line
from kbkit.text.markdown.writing import escape, fence

_DEEPEST = 4  # deepest level of headings
_MAX_NESTED = 200
_MAX_YAML = 5_000_000  # characters; parsing takes seconds per megabyte


def read(data: bytes, name: str) -> list[Part]:
    path = PurePosixPath(name.replace("\\", "/"))
    text = decode(data, markup=False).replace("\r\n", "\n").replace("\r", "\n")
    if parts := _openapi(text):
        return parts
    if path.suffix.lower() in (".yaml", ".yml"):
        body, kind = "\n\n".join(_yaml(text)), "yaml"
    else:
        body, kind = "\n\n".join(_json(text, path.suffix.lower())), "json"
    content = f"# {escape(path.name)}\n\n{body}\n" if body.strip() else ""
    return [Part(path.name, content, metadata={"format": "data", "language": kind})]


def _openapi(text: str) -> list[Part]:
    """Return endpoints and schemas of an OpenAPI description; nothing for other data."""
    if not re.search(r"""(?m)^\s*[{,]?\s*["']?openapi["']?\s*:""", text[:200_000]):
        return []
    from kbkit.sources.json_yaml import load_values
    from kbkit.sources.openapi.source import documents, version_problem

    try:
        values = load_values(text)
    except ValueError:
        return []  # read as plain data, which may report the error
    if version_problem(values):
        return []
    return [
        Part(
            document.title,
            document.content,
            name=document.uri,
            tags=document.tags,
            metadata={**document.metadata, "format": "openapi"},
        )
        for document in documents(values, "")
    ]


def _json(text: str, suffix: str) -> Iterator[str]:
    if suffix == ".ndjson":
        values = []
        for number, line in enumerate(text.split("\n"), 1):
            if line.strip():
                try:
                    values.append(json.loads(line))
                except ValueError:
                    raise UnreadableError(f"broken: line {number} is not JSON") from None
        yield from _value(values, 2)
        return
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        if suffix == ".jsonc":
            yield fence(text.strip("\n"), "json")
            return
        raise UnreadableError(
            f"broken: not JSON ({error.msg} at line {error.lineno}, column {error.colno})"
        ) from None
    except ValueError:  # numbers of thousands of digits
        raise UnreadableError("broken: JSON with a number that is too long") from None
    yield from _value(value, 2)


def _value(value: Any, level: int) -> Iterator[str]:
    whole = _pretty(value)
    if level > 2 and (len(whole) <= GROUP or level > _DEEPEST):
        yield fence(whole, "json")
    elif isinstance(value, dict) and value:
        for key, inner in value.items():
            yield f"{'#' * level} {_heading(key)}"
            yield from _value(inner, level + 1)
    elif isinstance(value, list) and len(whole) > GROUP:
        group: list[Any] = []
        first = size = 0
        for number, inner in enumerate(value):
            length = len(_pretty(inner))
            if group and size + length > GROUP:
                yield from _items(group, first, level)
                group, first, size = [], number, 0
            group.append(inner)
            size += length
        yield from _items(group, first, level)
    else:
        yield fence(whole, "json")


def _items(group: list[Any], first: int, level: int) -> Iterator[str]:
    last = first + len(group) - 1
    name = f"Items {first} to {last}" if last > first else f"Item {first}"
    yield f"{'#' * level} {name}"
    yield fence(_pretty(group[0] if len(group) == 1 else group), "json")


def _pretty(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def _heading(key: object) -> str:
    return escape(one_line(key)[:200]) or '""'


def _yaml(text: str) -> Iterator[str]:
    import yaml

    if len(text) > _MAX_YAML:
        raise UnreadableError(f"YAML of more than {_MAX_YAML / 1e6:g} million characters")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    lines = text.split("\n")
    try:
        _check_depth(yaml.parse(text, Loader=loader))
        documents = list(yaml.compose_all(text, Loader=loader))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f" at line {mark.line + 1}" if mark is not None else ""
        raise UnreadableError(f"broken: not YAML{place}") from None
    marks: list[tuple[int, str]] = []
    for node in documents:
        if isinstance(node, yaml.MappingNode) and not node.flow_style:
            marks.extend(
                (key.start_mark.line, str(key.value) if isinstance(key, yaml.ScalarNode) else "?")
                for key, _ in node.value
            )
        elif isinstance(node, yaml.SequenceNode) and not node.flow_style:
            marks.extend(_sequence(node, lines))
    marks = sorted(dict(reversed(marks)).items())
    starts = [_with_comments(lines, line) for line, _ in marks]
    opening = "\n".join(lines[: starts[0]] if starts else lines).strip("\n")
    if opening.strip() and (not starts or opening.strip() != "---"):
        yield fence(opening, "yaml")
    for (_, key), start, end in zip(marks, starts, [*starts[1:], len(lines)], strict=True):
        yield f"## {_heading(key)}"
        yield fence("\n".join(lines[start:end]).strip("\n"), "yaml")


def _check_depth(events: Iterator[Any]) -> None:
    depth = 0
    for event in events:
        name = type(event).__name__
        if name in ("MappingStartEvent", "SequenceStartEvent"):
            depth += 1
            if depth > _MAX_NESTED:
                raise UnreadableError("nested too deeply to be read")
        elif name in ("MappingEndEvent", "SequenceEndEvent"):
            depth -= 1


def _sequence(node: Any, lines: list[str]) -> Iterator[tuple[int, str]]:
    first = 0
    begin = size = 0
    for number, item in enumerate(node.value):
        line = item.start_mark.line
        size += sum(len(text) + 1 for text in lines[begin:line])
        if number and size > GROUP:
            yield begin, f"Items {first} to {number - 1}"
            first, size = number, 0
        if number == first:
            begin = line
            size = 0
    last = len(node.value) - 1
    if last >= 0:
        yield begin, f"Items {first} to {last}" if last > first else f"Item {first}"


def _with_comments(lines: list[str], line: int) -> int:
    while line and lines[line - 1].lstrip().startswith("#"):
        line -= 1
    return line
