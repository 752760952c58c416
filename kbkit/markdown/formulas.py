"""Convert TeX between dollars to MathML."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from functools import lru_cache

import nh3
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

_FORMULA = re.compile(r"\$\$(?=[^$])[^$]{1,4000}\$\$|\$(?=[^\s$])[^$\n]{0,500}(?<=[^\s\\])\$(?!\w)")
_TEX = re.compile(r"\\[A-Za-z]|[\^_]\{")
_WORD = re.compile(r"[A-Za-z]{3}|\s[A-Za-z]{2}\s")
_MAX_BRACES = 200
_UNSEEN = re.compile(r"\\(?:(?:label|tag\*?)\{[^{}]*\}|nonumber\b|notag\b)")
_ENVIRONMENTS = re.compile(
    r"\\(?P<place>begin|end)\{(?P<name>align|alignat|eqnarray|flalign|split|gather|multline|equation"
    r"|displaymath|math|array)\*?\}(?:(?<=array\})\{[^{}]*\})?"
)
_KNOWN = {
    **dict.fromkeys(
        ("align", "alignat", "eqnarray", "flalign", "split", "gather", "multline"), "aligned"
    ),
    "array": "matrix",
}
_BETWEEN = re.compile(r"(?<=>)\n\s*(?=<)")
_MARK = '<span class="kb-math">%s</span>'
_MARKED = re.compile(_MARK % r"([^<]*)")
_TAGS = {
    "math",
    "mfrac",
    "mi",
    "mn",
    "mo",
    "mover",
    "mpadded",
    "mphantom",
    "mroot",
    "mrow",
    "mspace",
    "msqrt",
    "mstyle",
    "msub",
    "msubsup",
    "msup",
    "mtable",
    "mtd",
    "mtext",
    "mtr",
    "munder",
    "munderover",
    "menclose",
}
_ATTRIBUTES = {
    "math": {"display"},
    "mo": {
        "stretchy",
        "movablelimits",
        "fence",
        "form",
        "accent",
        "minsize",
        "maxsize",
        "lspace",
        "rspace",
    },
    "mi": {"mathvariant"},
    "mspace": {"width"},
    "mstyle": {"displaystyle", "scriptlevel"},
    "mtable": {"displaystyle", "columnalign"},
    "mtd": {"columnalign"},
    "mfrac": {"linethickness"},
    "mover": {"accent"},
    "munder": {"accentunder"},
    "menclose": {"notation"},
}


def formula(state: StateInline, silent: bool) -> bool:
    """Keep TeX between dollars as it is: its backslashes and underscores are no Markdown.

    A rule of markdown-it; its tokens hold the TeX with its dollars.
    """
    found = _FORMULA.match(state.src, state.pos) if state.src[state.pos] == "$" else None
    if found is None:
        return False
    if not silent:
        before = state.src[state.pos - 1 : state.pos]
        kind = "text" if before.isalnum() or not _is_tex(found[0]) else "formula"
        state.push(kind, "", 0).content = html.unescape(found[0])
    state.pos = found.end()
    return True


def _is_tex(text: str) -> bool:
    return text.startswith("$$") or bool(_TEX.search(text)) or not _WORD.search(text)


def with_mathml(page: str) -> str:
    return _MARKED.sub(lambda found: mathml(html.unescape(found[1])) or found[0], page)


def marked(_: object, tokens: Sequence[Token], number: int, *__: object) -> str:
    """A formula as the text it is, marked for `with_mathml`; a rule of markdown-it."""
    return _MARK % html.escape(tokens[number].content, quote=False)


@lru_cache(maxsize=4_096)
def mathml(text: str) -> str:
    """Convert a formula to MathML, ``""`` if it is not supported."""
    # most pages have no formula
    from docutils.utils.math.latex2mathml import tex2mathml

    tex = text.strip("$").strip()
    if max(tex.count("{"), tex.count("\\left")) > _MAX_BRACES:
        return ""
    tex = _ENVIRONMENTS.sub(_environment, _UNSEEN.sub("", tex))
    try:
        written = tex2mathml(tex, as_block=text.startswith("$$"))
    except (ValueError, LookupError, AttributeError, TypeError, RecursionError):
        return ""  # it looks after few mistakes of those who write
    return nh3.clean(_BETWEEN.sub("", written), tags=_TAGS, attributes=_ATTRIBUTES)


def _environment(found: re.Match[str]) -> str:
    name = _KNOWN.get(found["name"], "")
    return f"\\{found['place']}{{{name}}}" if name else ""
