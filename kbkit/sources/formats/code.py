"""Split source code by definition; every line is kept.

Python is parsed with `ast`. In other languages a piece starts at an unindented line after an empty
one; Pygments' lexer finds its name.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from pathlib import PurePosixPath

from kbkit.sources.decode import decode
from kbkit.sources.parts import GROUP, Part, UnreadableError, one_line
from kbkit.text.markdown.writing import code_span, fence

_MAX = 3_000_000  # characters
_LEXED = 500_000  # characters; pieces of longer files have no names
_DEFINING = frozenset(
    str.split("""
        function class func fn def interface type struct enum trait impl module object record
        sub proc procedure table view namespace mod protocol extension message service rpc
    """)
)
_Piece = tuple[int, int, str, int]  # first line, line after the last, name or "", level


def read(data: bytes, name: str) -> list[Part]:
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
    names = [argument.arg for argument in (*spec.posonlyargs, *spec.args)]
    if spec.vararg:
        names.append("*" + spec.vararg.arg)
    names.extend(argument.arg for argument in spec.kwonlyargs)
    if spec.kwarg:
        names.append("**" + spec.kwarg.arg)
    return ", ".join(names)


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
