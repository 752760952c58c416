"""Convert reStructuredText with Sphinx directives and roles.

docutils runs without file access and raw markup. Directives and roles of Sphinx are registered
first: directives keep argument and content, roles their text.
"""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes, utils
from docutils.core import publish_parts
from docutils.languages import get_language
from docutils.parsers.rst import Directive, directives, roles
from docutils.writers.html5_polyglot import HTMLTranslator, Writer

from kbkit.sources.html.extract import markdown_of

_DIRECTIVE = re.compile(r"^[ \t]*\.\.[ \t]+(?:\|[^|\n]{1,80}\|[ \t]+)?([\w.+:-]{1,80}?)::", re.M)
_ROLE = re.compile(r":([A-Za-z][\w.+:-]{0,60}):`")
_TARGET = re.compile(r"^(.*?)\s*<([^<>]*)>$", re.DOTALL)
_CODE = frozenset(
    str.split("""
        sourcecode code-block literalinclude prompt ipython doctest testcode testoutput
        parsed-literal
    """)
)
_OBJECTS = frozenset(
    str.split("""
        function class method attribute data exception staticmethod classmethod property
        decorator decoratormethod describe object cfunction option envvar confval setting
        cmdoption directive role rst:directive macro type member var enum enumerator struct
        module-attribute opcode pdbcommand
    """)
)
_SILENT = frozenset(
    str.split("""
        toctree index highlight currentmodule tabularcolumns rst-class contents sectionauthor
        codeauthor include default-domain default-role module meta autosummary graphviz program
    """)
)
_LABELS = {
    "versionadded": "New in version",
    "versionchanged": "Changed in version",
    "versionremoved": "Removed in version",
    "deprecated": "Deprecated since version",
    "seealso": "See also",
    "todo": "To do",
    "availability": "Availability",
    "impl-detail": "Implementation detail",
}
_CODE_ROLES = frozenset(
    str.split("""
        func class meth attr mod data exc obj const file command option envvar samp kbd
        program keyword token c:func py:func py:class py:meth py:attr py:mod py:data py:exc
        py:obj setting lookup tfilter ttag djadmin source macro type member
    """)
)
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
}


def markdown_of_rst(text: str) -> str:
    """Convert reStructuredText to Markdown; unknown directives and roles keep their content."""
    _prepare(text)
    writer = Writer()
    writer.translator_class = _Translator
    parts = publish_parts(text, writer=writer, settings_overrides=_SETTINGS)
    return markdown_of(f"<body>{parts['html_body']}</body>")


class _Translator(HTMLTranslator):
    def visit_literal(self, node: Any) -> None:
        self.body.append(f"<code>{self.encode(node.astext())}</code>")
        raise nodes.SkipNode


def _prepare(text: str) -> None:
    document = utils.new_document("", settings=_quiet())
    language: Any = get_language("en", document.reporter)
    for name in set(_DIRECTIVE.findall(text)):
        directive, _ = directives.directive(name.lower(), language, document)
        if directive is None or name.lower() in ("literalinclude", "include", "class"):
            directives.register_directive(name.lower(), _UnknownDirective)
    for name in set(_ROLE.findall(text)):
        role, _ = roles.role(name.lower(), language, 0, document.reporter)
        if role is None:
            roles.register_local_role(name.lower(), _role)


def _quiet() -> Any:
    from docutils.frontend import get_default_settings
    from docutils.parsers.rst import Parser

    settings = get_default_settings(Parser)
    settings.report_level = settings.halt_level = 5
    return settings


def _role(  # noqa: PLR0917 - docutils passes them so
    name: str,
    rawtext: str,
    text: str,
    lineno: int,
    inliner: Any,
    options: Any = None,
    content: Any = None,
) -> tuple[list[Any], list[Any]]:
    """Write an unknown role as its text, or as the label before ``<target>``."""
    plain = utils.unescape(text)
    match = _TARGET.match(plain)
    shown = match.group(1) if match and match.group(1) else plain
    if shown.startswith("~"):
        shown = shown.rpartition(".")[2]
    shown = shown.lstrip("!~")
    short = name.lower()
    if short in _CODE_ROLES:
        return [nodes.literal(rawtext, shown)], []
    return [nodes.inline(rawtext, shown)], []


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
        if short in _CODE:
            if not text.strip():
                return [nodes.paragraph("", argument)] if argument else []
            language = argument if re.fullmatch(r"[\w+#-]{1,30}", argument) else ""
            return [nodes.literal_block(text, text, classes=["code", language])]
        if short in _SILENT and not (short == "program" and text):
            return []
        if short == "class" and self.name == short and not text and "(" not in argument:
            return []  # names a style, in docutils; Sphinx's describes a class
        if short in _OBJECTS:
            return [self._object(argument, short)]
        children = self._nested()
        if short in _LABELS:
            version, _, rest = argument.partition("\n" if short == "seealso" else " ")
            first, _, below = version.partition("\n")
            box = nodes.admonition("", classes=["note"])
            if short == "seealso":
                first, rest = "", argument
            box += nodes.title("", "", nodes.Text(f"{_LABELS[short]} {first}".strip()))
            if paragraph := f"{below} {rest}".strip():
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
