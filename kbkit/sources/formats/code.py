"""Source code, split by definition, JSON and YAML, split by key: every line is kept, in fences.

Python is parsed with `ast`. In other languages a piece starts at an unindented line after an empty
one; Pygments' lexer finds its name. JSON is indented. YAML keeps its text and comments: only
positions of keys are read, so aliases are never expanded.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

import yaml

from kbkit.sources.decode import decode
from kbkit.sources.parts import GROUP, Part, one_line
from kbkit.sources.untrusted import UnreadableError
from kbkit.text.markdown.writing import code_span, escape, fence

_MAX = 3_000_000  # characters
_LEXED = 500_000  # characters; pieces of longer files have no names
_DEFINING = frozenset(
    str.split("""
        function class func fn def interface type struct enum trait impl module object record
        sub proc procedure table view namespace mod protocol extension message service rpc
    """)
)
_Piece = tuple[int, int, str, int]  # first line, line after the last, name or "", level


def read_code(data: bytes, name: str) -> list[Part]:
    path = PurePosixPath(name.replace("\\", "/"))
    text = decode(data).replace("\r\n", "\n").replace("\r", "\n").strip("\n")
    if len(text) > _MAX:
        raise UnreadableError(f"source code of more than {_MAX / 1e6:g} million characters")
    lines = text.split("\n")
    language = _language(path)
    pieces: list[_Piece] | None = None
    if path.suffix.lower() in (".py", ".pyi"):
        language = "python"
        pieces = _python(text, lines)
    if pieces is None:
        pieces = list(_by_margin(lines, _definitions(text, path)))
    blocks = [f"# {code_span(path.name)}"]
    for start, end, defined, level in pieces:
        code = "\n".join(lines[start:end]).strip("\n")
        if not code.strip():
            continue
        if defined:
            blocks.append(f"{'#' * level} {code_span(one_line(defined)[:200])}")
        blocks.append(fence(code, language))
    content = "\n\n".join(blocks) + "\n" if text.strip() else ""
    return [Part(path.name, content, metadata={"format": "code", "language": language})]


def _python(text: str, lines: list[str]) -> list[_Piece] | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return None
    return list(_body(tree.body, 0, len(lines), lines, "", 2))


def _body(  # noqa: PLR0917
    body: list[ast.stmt], start: int, end: int, lines: list[str], prefix: str, level: int
) -> Iterator[_Piece]:
    """Yield the pieces of a module or class; text between definitions is one piece."""
    rest = start
    for node in body:
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        first = min([node.lineno, *(item.lineno for item in node.decorator_list)]) - 1
        while first > rest and lines[first - 1].lstrip().startswith("#"):
            first -= 1
        after = min(node.end_lineno or node.lineno, end)
        if first < rest:  # two definitions on one line
            continue
        if first > rest:
            yield rest, first, "", level
        name = prefix + node.name
        size = sum(len(line) + 1 for line in lines[first:after])
        if isinstance(node, ast.ClassDef):
            if size > GROUP and level < 4:
                inner = list(_body(node.body, first, after, lines, f"{name}.", level + 1))
                head, *others = inner
                yield head[0], head[1], head[2] or name, level if not head[2] else head[3]
                yield from others
            else:
                yield first, after, name, level
        else:
            yield first, after, f"{name}({_arguments(node)})", level
        rest = after
    if rest < end:
        yield rest, end, "", level


def _arguments(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    spec = node.args
    for each in ast.walk(spec):
        if isinstance(each, ast.arg):
            each.annotation = None
    spec.defaults, spec.kw_defaults = [], [None for _ in spec.kwonlyargs]
    return ast.unparse(spec)


def _language(path: PurePosixPath) -> str:
    from pygments.lexers import find_lexer_class_for_filename

    lexer = find_lexer_class_for_filename(path.name)
    return lexer.aliases[0] if lexer is not None and lexer.aliases else ""


def _definitions(text: str, path: PurePosixPath) -> dict[int, str]:
    from pygments.lexers import find_lexer_class_for_filename
    from pygments.token import Comment, Keyword, Name, Text

    lexer = find_lexer_class_for_filename(path.name)
    if lexer is None or len(text) > _LEXED:
        return {}
    names: dict[int, str] = {}
    line = 0
    before = ""
    for kind, value in lexer(stripnl=False, ensurenl=False).get_tokens(text):
        is_definition = kind in Name.Function or kind in Name.Class
        if (is_definition or (kind in Name and before in _DEFINING)) and line not in names:
            names[line] = value
        if kind in Keyword or value.strip() in _DEFINING:
            before = value.strip().lower().rpartition(" ")[2]
        elif value.strip() and kind not in Text and kind not in Comment:
            before = ""
        line += value.count("\n")
    return names


def _by_margin(lines: list[str], names: dict[int, str]) -> Iterator[_Piece]:
    """Yield pieces that start at the margin after an empty line; merge small nameless ones."""
    starts = [0]
    for number in range(1, len(lines)):
        line = lines[number]
        if line[:1].strip() and line[0] not in "})]" and not lines[number - 1].strip():
            starts.append(number)
    merged: list[tuple[int, str]] = []
    size = 0
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        length = sum(len(line) + 1 for line in lines[start:end])
        name = next(
            (
                names[n]
                for n in range(start, min(end, start + 60))
                if n in names and lines[n][:1].strip()
            ),
            "",
        )
        if merged and not name and not merged[-1][1] and size + length <= GROUP:
            size += length
            continue
        merged.append((start, name))
        size = length
    bounds = [*(start for start, _ in merged[1:]), len(lines)]
    for (start, name), end in zip(merged, bounds, strict=True):
        yield start, end, name, 2


_DEEPEST = 4  # deepest level of headings
_MAX_NESTED = 200
_MAX_YAML = 5_000_000  # characters; parsing takes seconds per megabyte


def read_data(data: bytes, name: str) -> list[Part]:
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
    from kbkit.sources.openapi import documents, version_problem
    from kbkit.sources.untrusted import load_values

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
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > _MAX_NESTED:
            raise UnreadableError("nested too deeply to be read")


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
