"""Write formulas of Office files and of MathML as LaTeX."""

from __future__ import annotations

import re
from typing import Any

MATH = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_MAX_DEPTH = 60
_SPECIAL = re.compile(r"[#$%&_{}]")
_LEAVES = frozenset({"mi", "mn", "mo", "ms", "mtext"})
_INTEGRAL = "\u222b"
_ACCENTS = {"\u0302": "hat", "\u0303": "tilde", "\u0304": "bar", "\u0307": "dot", "\u20d7": "vec"}
_SHAPES = {
    "f": r"\frac{{{num}}}{{{den}}}",
    "sSup": "{{{e}}}^{{{sup}}}",
    "sSub": "{{{e}}}_{{{sub}}}",
    "sSubSup": "{{{e}}}_{{{sub}}}^{{{sup}}}",
    "sPre": "{{}}_{{{sub}}}^{{{sup}}}{{{e}}}",
    "limLow": "{{{e}}}_{{{lim}}}",
    "limUpp": "{{{e}}}^{{{lim}}}",
    "bar": r"\overline{{{e}}}",
}
"""LaTeX of Office elements by their parts (ECMA-376, part 1, section 22.1)."""


_PRESENTED = {
    "mfrac": r"\frac{{{}}}{{{}}}",
    "msup": "{{{}}}^{{{}}}",
    "msub": "{{{}}}_{{{}}}",
    "msubsup": "{{{}}}_{{{}}}^{{{}}}",
    "munder": "{{{}}}_{{{}}}",
    "mover": "{{{}}}^{{{}}}",
    "munderover": "{{{}}}_{{{}}}^{{{}}}",
    "mroot": r"\sqrt[{1}]{{{0}}}",
}
"""LaTeX of MathML elements, with their children in order."""
_THREE = ("msubsup", "munderover")


def office_latex(formula: Any) -> str:
    """Write an ``m:oMath`` element."""
    return " ".join(_inside(formula, 0).split())


def mathml_latex(element: Any, depth: int = 0) -> str:
    """Write presentation MathML."""
    if depth > _MAX_DEPTH or not isinstance(element.tag, str):
        return ""
    name = element.tag.rpartition("}")[2]
    if name in _LEAVES:
        text = _plain(" ".join("".join(element.itertext()).split()))
        return rf"\text{{{text}}}" if name == "mtext" and text else text
    parts = [text for each in element if (text := mathml_latex(each, depth + 1))]
    if name in _PRESENTED and len(parts) == (3 if name in _THREE else 2):
        return _PRESENTED[name].format(*parts)
    if name == "msqrt":
        return rf"\sqrt{{{''.join(parts)}}}"
    if name in ("mtable", "mtr"):
        lines = (r" \\ " if name == "mtable" else " & ").join(parts)
        return rf"\begin{{matrix}}{lines}\end{{matrix}}" if name == "mtable" else lines
    if name.startswith("annotation"):
        return ""
    return "".join(parts)


def _inside(element: Any, depth: int) -> str:
    if depth > _MAX_DEPTH:
        return ""
    return "".join(_written(child, depth + 1) for child in element if isinstance(child.tag, str))


def _written(element: Any, depth: int) -> str:
    name = element.tag.rpartition("}")[2]
    if name.endswith("Pr"):
        return ""
    if name == "t":
        return _plain(element.text or "")

    def part(of: str) -> str:
        return "".join(_inside(each, depth) for each in element.findall(f"{MATH}{of}"))

    def value(of: str, default: str) -> str:
        setting = element.find(f"{MATH}{name}Pr/{MATH}{of}")
        return default if setting is None else setting.get(f"{MATH}val", "")

    if name in _SHAPES:
        parts = {of: part(of) for of in ("num", "den", "e", "sup", "sub", "lim")}
        return _SHAPES[name].format(**parts)
    if name == "rad":
        degree = part("deg")
        return rf"\sqrt[{degree}]{{{part('e')}}}" if degree else rf"\sqrt{{{part('e')}}}"
    if name == "nary":
        return f"{_plain(value('chr', _INTEGRAL))}_{{{part('sub')}}}^{{{part('sup')}}} {part('e')}"
    if name == "acc":
        return rf"\{_ACCENTS.get(value('chr', ''), 'hat')}{{{part('e')}}}"
    if name == "d":
        inner = value("sepChr", "|").join(
            _inside(each, depth) for each in element.findall(f"{MATH}e")
        )
        return f"{_plain(value('begChr', '('))}{inner}{_plain(value('endChr', ')'))}"
    if name in ("m", "eqArr"):
        rows = element.findall(f"{MATH}mr") or [[each] for each in element.findall(f"{MATH}e")]
        lines = [" & ".join(_inside(cell, depth) for cell in row) for row in rows]
        kind = "{matrix}" if name == "m" else "{aligned}"
        return rf"\begin{kind}" + r" \\ ".join(lines) + rf"\end{kind}"
    return _inside(element, depth)


def _plain(text: str) -> str:
    """Escape TeX commands; write other signs as commands."""
    text = _SPECIAL.sub(r"\\\g<0>", text.replace("\\", "\u2216"))
    if text.isascii():
        return text
    from docutils.utils.math.unichar2tex import uni2tex_table

    return text.translate(uni2tex_table)
