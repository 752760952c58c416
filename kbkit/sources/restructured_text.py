"""Convert reStructuredText and docstrings (numpy, Google and Sphinx styles) to Markdown.

docutils runs without file access and raw markup. Directives and roles of Sphinx are registered
first: directives keep argument and content, roles their text. Docstrings without marks of
reStructuredText are treated as Markdown.
"""

import re
from contextlib import suppress
from copy import copy
from functools import cache, lru_cache
from textwrap import dedent, fill
from typing import Any

from docutils import nodes, utils
from docutils.core import publish_parts
from docutils.frontend import get_default_settings
from docutils.languages import get_language
from docutils.parsers.rst import Directive, Parser, directives, roles
from docutils.readers.standalone import Reader
from docutils.writers.html5_polyglot import HTMLTranslator, Writer

from kbkit.sources.html.extract import markdown_of
from kbkit.text.markdown import writing
from kbkit.text.markdown.writing import fence, indent

_DIRECTIVE = re.compile(r"^[ \t]*\.\.[ \t]+(?:\|[^|\n]{1,80}\|[ \t]+)?([\w.+:-]{1,80}?)::", re.M)
_ROLE = re.compile(r":([A-Za-z][\w.+:-]{0,60}):`")
_TARGET = re.compile(r"^(.*?)\s*<([^<>]*)>$", re.DOTALL)
_OBJECTS = frozenset(writing.WORDS["objects"].split())
_LABELS = {
    **writing.VERSIONS,
    "seealso": "See also",
    "todo": "To do",
    "availability": "Availability",
    "impl-detail": "Implementation detail",
}
_SETTINGS = {
    "file_insertion_enabled": False,
    "raw_enabled": False,
    "_disable_config": True,
    "halt_level": 5,
    "report_level": 5,
    "traceback": True,  # otherwise docutils exits on its own errors
    "line_length_limit": 1_000_000,
    "input_encoding": "unicode",
    "syntax_highlight": "none",
    "smart_quotes": False,
    "math_output": "LaTeX",
    "embed_stylesheet": False,
    "stylesheet_path": "",
    "initial_header_level": 2,
    "sectsubtitle_xform": False,
    "toc_backlinks": False,
    "footnote_backlinks": False,
}


def markdown_of_rst(text: str) -> str:
    """Convert reStructuredText to Markdown; unknown directives and roles keep their content."""
    _prepare(text)
    writer = Writer()
    writer.translator_class = _Translator
    parts = publish_parts(text, writer=writer, settings=_settings())
    return markdown_of(f"<body>{parts['html_body']}</body>")


@cache
def _settings() -> Any:
    settings = get_default_settings(Reader, Parser, Writer)
    settings._update_loose(_SETTINGS)
    return settings


class _Translator(HTMLTranslator):
    def visit_literal(self, node: Any) -> None:
        self.body.append(f"<code>{self.encode(node.astext())}</code>")
        raise nodes.SkipNode

    def visit_doctest_block(self, node: Any) -> None:
        self.body.append(self.starttag(node, "pre", "", classes=["code", "pycon"]))


def _prepare(text: str) -> None:
    document = utils.new_document("", settings=_settings())
    language: Any = get_language("en", document.reporter)
    for name in set(_DIRECTIVE.findall(text)):
        directive, _ = directives.directive(name.lower(), language, document)
        if directive is None or name.lower() in ("literalinclude", "include", "class"):
            directives.register_directive(name.lower(), _UnknownDirective)
    for name in set(_ROLE.findall(text)):
        role, _ = roles.role(name.lower(), language, 0, document.reporter)
        if role is None:
            roles.register_local_role(name.lower(), _role)


def _role(name: str, rawtext: str, text: str, *_: Any) -> tuple[list[Any], list[Any]]:
    """Write an unknown role as its text, or as the label before ``<target>``."""
    plain = utils.unescape(text)
    match = _TARGET.match(plain)
    label = match.group(1) if match and match.group(1) else plain
    if label.startswith("~"):
        label = label.rpartition(".")[2]
    label = label.lstrip("!~")
    kind = nodes.literal if writing.CODE_ROLES.fullmatch(name.lower()) else nodes.inline
    return [kind(rawtext, label)], []


class _AnyOptions(dict[str, Any]):
    def __bool__(self) -> bool:
        return True

    def __contains__(self, key: object) -> bool:
        return True

    def __missing__(self, key: str) -> Any:
        return directives.unchanged


class _UnknownDirective(Directive):
    has_content = True
    optional_arguments = 1
    final_argument_whitespace = True
    option_spec = _AnyOptions()

    def run(self) -> list[Any]:
        short = self.name.lower().rpartition(":")[2]
        argument = self.arguments[0].strip() if self.arguments else ""
        text = "\n".join(self.content)
        if short in writing.CODE:
            if not text.strip():
                return [nodes.paragraph("", argument)] if argument else []
            language = argument if re.fullmatch(r"[\w+#-]{1,30}", argument) else ""
            return [nodes.literal_block(text, text, classes=["code", language])]
        if short == "toctree" or (
            short in writing.SILENT and not (short in writing.NAMING and text)
        ):
            return []
        if short == "class" and self.name == short and not text and "(" not in argument:
            return []  # names a style in docutils; Sphinx's directive describes a class
        if short in _OBJECTS:
            return [self._object(argument, short)]
        children = self._nested()
        if short in _LABELS:
            start, _, remainder = argument.partition(" ")
            if short == "seealso":
                start, remainder = "", argument
            first, _, below = start.partition("\n")
            box = nodes.admonition("", classes=["note"])
            box += nodes.title("", "", nodes.Text(f"{_LABELS[short]} {first}".strip()))
            if paragraph := f"{below} {remainder}".strip():
                inline, messages = self.state.inline_text(paragraph, self.lineno)
                box += nodes.paragraph("", "", *inline)
                box.extend(messages)
            box.extend(children)
            return [box]
        if argument:
            children.insert(0, nodes.paragraph("", argument))
        return children

    def _object(self, argument: str, short: str) -> Any:
        item = nodes.definition_list_item()
        for signature in re.sub(r"\\\n\s*", "", argument).split("\n"):
            if signature.strip():
                item += nodes.term("", "", nodes.literal("", signature.strip()))
        body = nodes.definition()
        body.extend(self._nested())
        item += body
        return nodes.definition_list("", item, classes=["py", short])

    def _nested(self) -> list[Any]:
        holder = nodes.Element()
        holder.document = self.state.document
        self.state.nested_parse(self.content, self.content_offset, holder, match_titles=True)
        return list(holder.children)


_RST = re.compile(r"(?m)::[ \t]*$|^[ \t]*\.\. |:[a-z:]+:`|[`\]]_+(?!\w)")
"""Marks that do not occur in Markdown."""
_TITLE = re.compile(r"(?m)(?<![^\n]\n)^(\S.*)\n[=\-~^\"'#*+]{3,}[ \t]*$")
_MARKS = re.compile(
    r"(?P<fence>^[ \t]*(?P<mark>`{3,}|~{3,}).*?(?:^[ \t]*(?P=mark)[ \t]*$|\Z))"
    r"|(?P<doctest>^(?P<margin>[ \t]*)>>> "
    r"(?:[^\n]|\n(?=(?P=margin)[ \t]*\S)|\n\s*\n(?=(?P=margin)>>> ))*)"
    r"|(?P<code>`+[^`]*`+)|<(?=[A-Za-z/!?])",
    re.MULTILINE | re.DOTALL,
)
_BLOCK = re.compile(r"\.\. |>>>|[-*] ")


def to_markdown(docstring: Any) -> str:
    """Write a docstring as Markdown.

    Sections (parameters, returns, examples) start with a bold line, not a heading, so that search
    finds the entry as a whole.
    """
    if docstring is None:
        return ""
    from griffe import Parser, infer_docstring_style

    text: str = docstring.value
    padded = copy(docstring)
    padded.value = f"\n{text.strip()}\n"  # griffe finds sections between other lines only
    with suppress(Exception):  # keep it unchanged if its parser fails
        order = [Parser.numpy, Parser.sphinx, Parser.google]
        style, _ = infer_docstring_style(padded, style_order=order, default=Parser.numpy)
        sections = padded.parse(style, warnings=False)
        text = "\n\n".join(_section(part, _is_rst(text)) for part in sections)
    return markdown(text)


def summary(docstring: Any) -> str:
    """Return the first paragraph of a docstring as one line."""
    if docstring is None:
        return ""
    first = re.split(r"\n\s*\n", docstring.value.strip(), maxsplit=1)[0]
    return " ".join(markdown(" ".join(first.split()).removesuffix("::")).split())[:300]


def _is_rst(text: str) -> bool:
    return "```" not in text and bool(_RST.search(text))


@lru_cache(1_000)  # pages mention an object three times
def markdown(text: str) -> str:
    """Convert reStructuredText, Markdown or plain text to Markdown."""
    text = text.expandtabs(4).strip("\n")
    if "```" not in text:
        text = _TITLE.sub(r"**\1**\n", text)
    if _is_rst(text):
        return markdown_of_rst(f".. default-role:: literal\n\n{text}")
    return _MARKS.sub(_escape_tag, text)


def _escape_tag(match: re.Match[str]) -> str:
    if match["doctest"]:
        return indent(fence(dedent(match[0]), "pycon"), match["margin"])
    if match["code"]:
        return writing.code_span(match[0].strip("`").strip())
    return match[0] if match["fence"] else "&lt;"


def _section(section: Any, rst: bool) -> str:
    """Write a section, for further conversion."""
    kind, value = section.kind.value, section.value
    title = section.title or (value.kind.replace("-", " ") if kind == "admonition" else kind)
    if kind == "text":
        return str(value)
    if kind == "deprecated":
        title, text = f"Deprecated since version {value.version}", value.description
    elif kind == "examples":
        text = "\n\n".join(
            part if kind.value == "text" else _doctest(part, rst) for kind, part in value
        )
    elif kind == "admonition":
        text = value.description
        if title.lower() == "see also":
            text = re.sub(r"(?m)^( *)(?=\S)", lambda m: "    " if m[1] else "-   ", text)
    else:
        text = "\n".join(map(_item, value if isinstance(value, list) else [value]))
    return f"**{title[:1].upper()}{title[1:]}**\n\n{text}" if text else ""


def _doctest(code: str, rst: bool) -> str:
    return f".. code:: pycon\n\n{indent(code, '    ')}" if rst else fence(code, "pycon")


def _item(value: Any) -> str:
    if isinstance(value, str):
        return value
    # without the default: the signature has it, and parsers often misread it in prose
    name, kind = getattr(value, "name", ""), getattr(value, "annotation", "")
    head = [f"``{name}``"] if name else []
    head += [f"(``{kind}``)" if name else f"``{kind}``"] if kind else []
    text = getattr(value, "description", "")
    joint = (":\n\n" if _BLOCK.match(text) else ": ") if head and text else ""
    return "-" + indent(" ".join(head) + joint + text, "    ")[1:]


_WIDE = 88  # characters of a line of a signature


def signature(path: str, item: Any) -> str:
    """Write a signature, on several lines if it is long."""
    import griffe

    function = item
    if item.is_class:
        function = griffe.Function(item.name, parent=item)
        with suppress(Exception):  # its constructor is inherited from elsewhere
            function.parameters = item.parameters
    line = function.signature(name=path)
    # griffe keeps the mark after a `self` that it leaves out
    line = line.replace("(/, ", "(").replace("(/)", "()")
    return fill(line, _WIDE, subsequent_indent="    ", break_long_words=False)
