"""Source code, split by definition, JSON and YAML, split by key: every line is kept, in fences.

Python is parsed with `ast`. In other languages a piece starts at an unindented line after an empty
one; Pygments' lexer finds its name. JSON is indented. YAML is not parsed, but split at its
unindented keys, so templates can be read, and aliases are never expanded.
"""

import ast
import json
import re
import warnings
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from kbkit.errors import SourceError
from kbkit.sources.decode import decode
from kbkit.sources.parts import GROUP, Part, grouped, one_line
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
_Start = tuple[int, str, int]  # first line of a piece, its name or "", and level


def read_code(data: bytes, name: str) -> list[Part]:
    from pygments.lexers import find_lexer_class_for_filename

    path = PurePosixPath(name.replace("\\", "/"))
    text = decode(data).replace("\r\n", "\n").replace("\r", "\n").strip("\n")
    if len(text) > _MAX:
        raise UnreadableError(f"source code of more than {_MAX / 1e6:g} million characters")
    lines = text.split("\n")
    lexer = find_lexer_class_for_filename(path.name)
    language = lexer.aliases[0] if lexer is not None and lexer.aliases else ""
    starts = _python(text, lines) if path.suffix.lower() in (".py", ".pyi") else None
    if starts is None:
        numbers = [
            number
            for number in range(1, len(lines))
            if lines[number][:1].strip() and lines[number][0] not in "})]"
            if not lines[number - 1].strip()
        ]
        starts = _join_pieces(lines, numbers, _definitions(text, lexer))
    blocks = [f"# {code_span(path.name)}"]
    for definition, level, code in _pieces(starts, lines):
        if definition:
            blocks.append(f"{'#' * level} {code_span(one_line(definition)[:200])}")
        blocks.append(fence(code, language))
    content = "\n\n".join(blocks) + "\n" if text.strip() else ""
    return [Part(path.name, content, metadata={"format": "code", "language": language})]


def _pieces(starts: list[_Start], lines: list[str]) -> Iterator[tuple[str, int, str]]:
    """Iterate over pieces with text: name, level and text."""
    ends = [*(start for start, _, _ in starts[1:]), len(lines)]
    for (start, name, level), end in zip(starts, ends, strict=True):
        code = "\n".join(lines[start:end]).strip("\n")
        if code.strip():
            yield name, level, code


def _python(text: str, lines: list[str]) -> list[_Start] | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return None
    return [(0, "", 2), *_body(tree.body, 0, lines, "", 2)]


def _body(
    body: list[ast.stmt], position: int, lines: list[str], prefix: str, level: int
) -> Iterator[_Start]:
    """Yield the definitions of a module or class, and the text after each."""
    for node in body:
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        first = min([node.lineno, *(item.lineno for item in node.decorator_list)]) - 1
        while first > position and lines[first - 1].lstrip().startswith("#"):
            first -= 1
        if first < position:  # two definitions on one line
            continue
        name = prefix + node.name
        position = node.end_lineno or node.lineno
        if not isinstance(node, ast.ClassDef):
            yield first, f"{name}({_arguments(node)})", level
        else:
            yield first, name, level
            if level < 4 and sum(len(line) + 1 for line in lines[first:position]) > GROUP:
                yield from _body(node.body, first, lines, f"{name}.", level + 1)
        yield position, "", level


def _arguments(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    spec = node.args
    for child in ast.walk(spec):
        if isinstance(child, ast.arg):
            child.annotation = None
    spec.defaults, spec.kw_defaults = [], [None for _ in spec.kwonlyargs]
    return ast.unparse(spec)


def _definitions(text: str, lexer: Any) -> dict[int, str]:
    from pygments.token import Comment, Keyword, Name, Text

    if lexer is None or len(text) > _LEXED:
        return {}
    names: dict[int, str] = {}
    line = 0
    keyword = ""
    for kind, value in lexer(stripnl=False, ensurenl=False).get_tokens(text):
        is_definition = kind in Name.Function or kind in Name.Class
        if (is_definition or (kind in Name and keyword in _DEFINING)) and line not in names:
            names[line] = value
        if kind in Keyword or value.strip() in _DEFINING:
            keyword = value.strip().lower().rpartition(" ")[2]
        elif value.strip() and kind not in Text and kind not in Comment:
            keyword = ""
        line += value.count("\n")
    return names


def _join_pieces(lines: list[str], starts: list[int], names: dict[int, str]) -> list[_Start]:
    """Name the pieces that begin at lines; adjacent small nameless ones are merged."""
    starts = [0, *starts]
    merged: list[_Start] = []
    size = 0
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        length = sum(len(line) + 1 for line in lines[start:end])
        places = range(start, min(end, start + 60))
        outermost = (names[n] for n in places if n in names and lines[n][:1].strip())
        name = next(outermost, "")
        if merged and not name and not merged[-1][1] and size + length <= GROUP:
            size += length
        else:
            merged.append((start, name, 2))
            size = length
    return merged


_DEEPEST = 4  # deepest level of headings
_KEY = re.compile(r"""("[^"]+"|'[^']+'|[^\s#&*!|>%@`{}\[\],"'-].{0,200}?)[ \t]{0,9}:(?:\s|$)""")


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
    from kbkit.sources.openapi import ApiDescription
    from kbkit.sources.untrusted import load_values

    try:
        documents = list(ApiDescription(load_values(text), "").documents())
    except (ValueError, SourceError):
        return []  # read as plain data, which may report the error
    return [
        Part(
            document.title,
            document.content,
            name=document.uri,
            tags=document.tags,
            metadata={**document.metadata, "format": "openapi"},
        )
        for document in documents
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
        first = 0
        for group in grouped(value, lambda inner: len(_pretty(inner)), GROUP):
            last = first + len(group) - 1
            name = f"Items {first} to {last}" if last > first else f"Item {first}"
            yield f"{'#' * level} {name}"
            yield fence(_pretty(group[0] if len(group) == 1 else group), "json")
            first = last + 1
    else:
        yield fence(whole, "json")


def _pretty(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def _heading(key: object) -> str:
    return escape(one_line(key)[:200]) or '""'


def _yaml(text: str) -> Iterator[str]:
    lines = text.split("\n")
    starts: list[int] = []
    names: dict[int, str] = {}
    for number, line in enumerate(lines):
        key = _KEY.match(line)
        # items at the margin belong to the key above them, if there is one
        if key or (not names and re.match(r"-(?:\s|$)", line)):
            start = number
            while start and lines[start - 1].startswith("#"):
                start -= 1
            starts.append(start)
            if key:
                names[start] = key[1].strip("\"'")
    for name, _, code in _pieces(_join_pieces(lines, starts, names), lines):
        if name:
            yield f"## {_heading(name)}"
        if name or code.strip() != "---":
            yield fence(code, "yaml")
