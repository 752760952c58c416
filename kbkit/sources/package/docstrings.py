"""Convert docstrings to Markdown: numpy, Google and Sphinx styles."""

from __future__ import annotations

import re
from typing import Any

from kbkit.text.markdown.writing import code_span, fence, indent, quote

_ROLE = re.compile(r":(?:[a-z]+:)*[a-z]+:`(?:~|!|\.)?([^`<]+?)(?:\s*<[^`>]*>)?`")
_MATH = re.compile(r":math:`([^`]+)`")
_LITERAL = re.compile(r"``(.+?)``")
_BROKEN_LITERAL = re.compile(r"(?<!`)``([^`]+)``(?!`)")
_RST_LINK = re.compile(r"`([^`<]+?)\s*<(https?://[^`>]+)>`__?")
_RST_REFERENCE = re.compile(r"`([^`]+)`_\b|\b\[(\w+)\]_")
_DIRECTIVE = re.compile(r"^(\s*)\.\. ([\w-]+)::[ \t]*(.*)$")
_COMMENT = re.compile(r"^\s*\.\. (?:_[\w -]+:|\[\w+\]|\|)")
_OPTION = re.compile(r"^\s+:[\w-]+:")
_UNDERLINE = re.compile(r"^([=\-~^\"'`#*+]){3,}\s*$")
_STYLES = (
    (
        "numpy",
        re.compile(
            r"(?m)^[ \t]*(?:Parameters|Returns|Yields|Raises|Examples?|Notes?|See Also|Attributes|"
            r"Warnings?|References|Methods|Other Parameters|Warns|Receives)"
            r"[ \t]*\n[ \t]*-{3,}[ \t]*$"
        ),
    ),
    ("sphinx", re.compile(r"(?m)^[ \t]*:(?:param|type|returns?|rtype|raises?|ivar|var)\b[^:\n]*:")),
    (
        "google",
        re.compile(
            r"(?m)^[ \t]*(?:Args|Arguments|Parameters|Params|Returns?|Yields?|Raises|Examples?|"
            r"Attributes|Other Args|Keyword Args|Note|Warning|Todo)[ \t]*:[ \t]*$"
        ),
    ),
)
_VERSIONS = {
    "versionadded": "Added in version",
    "versionchanged": "Changed in version",
    "deprecated": "Deprecated since version",
}
_CODE = frozenset({"code-block", "code", "sourcecode", "ipython", "doctest", "testcode"})
_DROPPED = frozenset(
    {"plot", "image", "figure", "index", "autosummary", "toctree", "currentmodule", "highlight"}
)


def to_markdown(docstring: Any) -> str:
    """Write a docstring as Markdown.

    Sections (parameters, returns, examples) start with a bold line, not a heading, so that search
    finds the entry as a whole.
    """
    style = next((style for style, pattern in _STYLES if pattern.search(docstring.value)), "")
    if not style:
        return rst(docstring.value)
    try:
        sections = docstring.parse(style, warnings=False)
    except Exception:  # write it as plain text if its parser fails
        return rst(docstring.value)
    blocks = [_section(section) for section in sections]
    return "\n\n".join(block for block in blocks if block.strip())


def summary(docstring: Any) -> str:
    """Return the first paragraph of a docstring as one line."""
    if docstring is None:
        return ""
    first = re.split(r"\n\s*\n", docstring.value.strip(), maxsplit=1)[0]
    return inline(" ".join(first.split()))[:300]


def inline(text: str) -> str:
    """Convert inline reStructuredText to Markdown; escape text that looks like HTML."""
    # addresses may continue on the next line, as in Sphinx
    text = _RST_LINK.sub(lambda match: f"[{match[1]}]({''.join(match[2].split())})", text)
    text = _MATH.sub(lambda match: code_span(match[1]), text)
    text = _ROLE.sub(lambda match: f"`{match.group(1).strip()}`", text)
    text = _LITERAL.sub(lambda match: code_span(match.group(1)), text)
    text = _RST_REFERENCE.sub(lambda match: match.group(1) or f"[{match.group(2)}]", text)
    parts = re.split(r"(`+[^`]*`+)", text)
    return "".join(
        part if index % 2 else re.sub(r"<(?=[A-Za-z/!?])", "&lt;", part)
        for index, part in enumerate(parts)
    )


def rst(text: str) -> str:
    """Convert blocks of reStructuredText, Markdown or plain text to Markdown.

    Doctests and literal blocks become fences, notes and version marks text; other lines stay.
    """
    lines = _unbroken(text).expandtabs(4).rstrip().split("\n")
    out: list[str] = []
    index = 0
    while index < len(lines):
        line = lines[index]
        stripped = line.strip()
        if re.match(r"(`{3,}|~{3,})", stripped):
            index = _fenced(lines, index, out)
        elif stripped.startswith(">>>"):
            index = _doctest(lines, index, out)
        elif match := _DIRECTIVE.match(line):
            index = _directive(lines, index, match, out)
        elif _COMMENT.match(line):
            _, index = _body(lines, index + 1, _width(line))
        elif _UNDERLINE.match(line) and out and out[-1].strip() and out[-2:-1] in ([""], []):
            out[-1] = f"**{out[-1].strip()}**"
            out.append("")
            index += 1
        elif stripped.endswith("::") and not stripped.startswith(".."):
            index = _literal(lines, index, out)
        else:
            out.append(inline(line))
            index += 1
    return re.sub(r"\n{3,}", "\n\n", "\n".join(out)).strip("\n")


def _unbroken(text: str) -> str:
    for pattern in (_RST_LINK, _MATH, _ROLE, _BROKEN_LITERAL):
        text = pattern.sub(_in_one_line, text)
    return text


def _in_one_line(match: re.Match[str]) -> str:
    """Join a match to one line, unless a paragraph or example starts inside."""
    text = match.group()
    return text if re.search(r"\n\s*(?:\n|>>>)", text) else " ".join(text.split())


def _section(section: Any) -> str:
    kind = section.kind.value
    title = section.title or kind.capitalize()
    if kind == "text":
        return rst(section.value)
    if kind == "examples":
        parts = [
            fence(value, "pycon") if part.value == "examples" else rst(value)
            for part, value in section.value
        ]
        return "\n\n".join([f"**{title}**", *parts])
    if kind == "admonition":
        return _admonition(section)
    if kind == "deprecated":
        return quote(
            f"**Deprecated since version {section.value.version}**\n\n"
            + rst(section.value.description)
        )
    values = section.value if isinstance(section.value, list) else [section.value]
    items = [item for value in values if (item := _item(value))]
    return "\n\n".join([f"**{title}**", "\n".join(items)]) if items else ""


def _admonition(section: Any) -> str:
    title = section.title or section.value.kind.replace("-", " ").capitalize()
    text = section.value.description
    if title.lower().startswith("see also"):
        return f"**{title}**\n\n{_see_also(text)}"
    if title.lower() in ("notes", "references", "examples", "warnings", "methods", "attributes"):
        return f"**{title}**\n\n{rst(text)}"
    return quote(f"**{title}**\n\n{rst(text)}")


def _see_also(text: str) -> str:
    items: list[str] = []
    for line in _unbroken(text).split("\n"):
        if not line.strip():
            continue
        if line[0].isspace() and items:
            items[-1] += (" " if items[-1].endswith((".", ":")) else ": ") + inline(line.strip())
            continue
        name, colon, description = line.partition(" : ")
        names = ", ".join(code_span(part.strip(" `:")) for part in name.split(",") if part.strip())
        items.append(f"-   {names}" + (f": {inline(description.strip())}" if colon else ""))
    return "\n".join(items)


def _item(value: Any) -> str:
    if isinstance(value, str):
        return rst(value)
    name = getattr(value, "name", None) or ""
    annotation = str(value.annotation) if getattr(value, "annotation", None) else ""
    described = rst(getattr(value, "description", "") or "")
    # without the default: the signature has it, and parsers often misread it in prose
    kind = code_span(annotation)
    head = code_span(name) if name else ""
    if kind:
        head = f"{head} ({kind})" if head else kind
    if not head:
        return f"-   {indent(described, '    ')[4:]}" if described else ""
    if not described:
        return f"-   {head}"
    return f"-   {head}: {indent(described, '    ').lstrip()}"


def _width(line: str) -> int:
    return len(line) - len(line.lstrip())


def _body(lines: list[str], index: int, width: int) -> tuple[list[str], int]:
    body: list[str] = []
    while index < len(lines) and (not lines[index].strip() or _width(lines[index]) > width):
        body.append(lines[index])
        index += 1
    while body and not body[-1].strip():
        body.pop()
    least = min((_width(line) for line in body if line.strip()), default=0)
    return [line[least:] for line in body], index


def _fenced(lines: list[str], index: int, out: list[str]) -> int:
    mark = re.match(r"(`{3,}|~{3,})", lines[index].strip())
    assert mark is not None
    out.append(lines[index])
    index += 1
    while index < len(lines):
        out.append(lines[index])
        index += 1
        if out[-1].strip().startswith(mark.group(1)):
            return index
    out.append(" " * _width(lines[-1]) + mark.group(1))
    return index


def _doctest(lines: list[str], index: int, out: list[str]) -> int:
    width = _width(lines[index])
    code = []
    while index < len(lines):
        line = lines[index]
        if not line.strip():
            following = next((rest for rest in lines[index + 1 :] if rest.strip()), "")
            if not following.strip().startswith(">>>"):
                break
            code.append("")
        elif _width(line) < width:
            break
        else:
            code.append(line[width:])
        index += 1
    _block(fence("\n".join(code).strip("\n"), "pycon"), width, out)
    return index


def _literal(lines: list[str], index: int, out: list[str]) -> int:
    line = lines[index]
    head = line.rstrip()[:-2].rstrip()
    body, after = _body(lines, index + 1, _width(line))
    if not body:
        out.append(inline(line))
        return index + 1
    if head:
        out.append(inline(head + ("" if head.endswith(":") else ":")))
    while body and not body[0].strip():
        body.pop(0)
    _block(fence("\n".join(body)), _width(line), out)
    return after


def _directive(lines: list[str], index: int, match: re.Match[str], out: list[str]) -> int:
    name, argument = match.group(2), match.group(3).strip()
    width = len(match.group(1))
    body, after = _body(lines, index + 1, width)
    while body and (not body[0].strip() or _OPTION.match(" " + body[0])):
        body.pop(0)
    if name in _CODE:
        _block(fence("\n".join(body), argument if argument.isalnum() else "python"), width, out)
    elif name in _VERSIONS:
        version, _, rest = argument.partition(" ")
        text = rst("\n".join([rest.strip(), *body]).strip())
        label = f"*{_VERSIONS[name]} {version.rstrip(':')}*"
        _block(f"{label}: {text}" if text else label, width, out)
    elif name == "math":
        _block("$$\n" + "\n".join([argument, *body]).strip() + "\n$$", width, out)
    elif name not in _DROPPED:
        text = rst("\n".join([argument, *body]).strip())
        if text:
            _block(quote(f"**{name.replace('-', ' ').capitalize()}**\n\n{text}"), width, out)
    return after


def _block(block: str, width: int, out: list[str]) -> None:
    if out and out[-1].strip():
        out.append("")
    out.append(indent(block, " " * width))
    out.append("")


_WIDE = 88  # characters of a signature, above which each parameter has its own line


def signature(path: str, item: Any) -> str:
    """Write a signature; a long one with one parameter per line."""
    try:
        parameters = list(item.parameters)
    except Exception:  # a class whose constructor is inherited from elsewhere
        parameters = []
    if parameters and parameters[0].name in ("self", "cls", "mcs"):
        parameters = parameters[1:]
    written: list[str] = []
    starred = False
    for index, parameter in enumerate(parameters):
        kind = parameter.kind.value if parameter.kind else ""
        if kind == "variadic positional":
            starred = True
        if kind == "keyword-only" and not starred:
            written.append("*")
            starred = True
        written.append(_parameter(parameter, kind))
        following = parameters[index + 1] if index + 1 < len(parameters) else None
        if kind == "positional-only" and (
            following is None or not following.kind or following.kind.value != kind
        ):
            written.append("/")
    returns = getattr(item, "returns", None)
    end = f" -> {returns}" if item.is_function and returns else ""
    line = f"{path}({', '.join(written)}){end}"
    if len(line) <= _WIDE:
        return line
    inner = "".join(f"    {part},\n" for part in written)
    return f"{path}(\n{inner}){end}"


def _parameter(parameter: Any, kind: str) -> str:
    stars = {"variadic positional": "*", "variadic keyword": "**"}.get(kind, "")
    text = stars + parameter.name
    if parameter.annotation:
        text += f": {parameter.annotation}"
    if parameter.default is not None and not stars:
        text += f" = {parameter.default}" if parameter.annotation else f"={parameter.default}"
    return str(text)
