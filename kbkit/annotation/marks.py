"""What shows that something is a name, and how names are written: signatures, flags, code."""

from __future__ import annotations

import re
from typing import NamedTuple

from kbkit.models import EntityType, Name
from kbkit.text.stopwords import stop_words

_WORDS_BEFORE = re.compile(
    r"(?:(?:class|exception|function|method|async|static|abstract|classmethod|staticmethod|property"
    r"|attribute|data|type|enum|struct|union|macro|const|var|let|def|fn|func|pub|unsafe|extern|impl"
    r"|trait|interface|module|mod|namespace|new|inline|virtual|public|protected|final|void|int|char"
    r"|await|export|default|readonly)\s+)+"
)
_DOTTED = r"[A-Za-z_$][\w$]*(?:(?:\.|::|->|\#)[A-Za-z_~$][\w$!?]*)*"
_SIGNATURE = re.compile(
    rf"(?P<before>(?:[\w:<>,*&\[\]]+[ *&]+){{0,6}}?)(?P<name>{_DOTTED})(?:<[^<>()]{{0,40}}>)?"
    r"(?P<call>\()(?:[^()]|\([^()]*\)){0,400}\)?.{0,60}"
)
IDENTIFIER = re.compile(_DOTTED)
FLAG = re.compile(r"(?<![\w-])(?:--[A-Za-z][\w-]*|-[A-Za-z]\w{0,30})(?![\w-])")
NUMBER = re.compile(
    r"\A(?:(?:Chapter|Section|Appendix|Part|§)\s+[\dA-Z]+[.:]?\s+|(?:\d+|[A-Z](?=\.))(?:\.\d+)*\.?\s+)(?=\S)"
)
SPAN = re.compile(r"(?<![`\\])(`+)(?!`)(.{1,130}?)(?<!`)\1(?!`)")
LINK = re.compile(r"(?<![!\\])\[([^\[\]\n]{2,80})\]\(([^()\s]*(?:\([^()\s]*\)[^()\s]*)*)\)")
ADDRESS = re.compile(r"(?:https?|ftp|file|mailto):\S*")
LITERALS = frozenset(
    str.split("""
        true false none null nil self this undefined nan yes no on off 0 1 foo bar baz foo() bar()
        """)
)
STOP_WORDS = stop_words("english")


class Mark(NamedTuple):
    """A name with how much it is one: 0 for definitions, 1 for marks, 2 for candidates."""

    rank: int
    name: Name
    chapter: str = ""


def defined(name: str, kind: EntityType, anchor: str = "", *, confirmed: bool = True) -> Mark:
    """A name that a document says what it is, there."""
    return Mark(0 if confirmed else 2, Name(name, kind, True, anchor, confirmed))


def signature(text: str) -> str:
    """The identifier that a heading consists of or declares, or ``""``."""
    text = text.strip("` ")
    stripped = _WORDS_BEFORE.sub("", text, count=1) if not IDENTIFIER.fullmatch(text) else text
    if found := IDENTIFIER.fullmatch(
        stripped.partition("(")[0].partition(" = ")[0].partition(": ")[0].strip()
    ):
        called = "(" in stripped or " = " in stripped
        if called or " " not in stripped:
            return found[0]
    if found := _SIGNATURE.fullmatch(text):
        before = found["before"].split()
        prose = [word for word in before if word.lower() in STOP_WORDS]
        glued = text[found.start("call") - 1] != " "
        return found["name"] if glued and not prose else ""
    return ""


def anchored(signed: str, anchor: str) -> str:
    """The qualified name that an anchor gives a signature, or ``""``."""
    if not IDENTIFIER.fullmatch(anchor):
        return ""
    if anchor == signed:
        return anchor
    for separator in (".", "::", "#"):
        if anchor.endswith(separator + signed):
            return anchor
        last = re.split(r"\.|::|->|#", signed)[-1]
        if anchor.endswith(separator + last):
            return anchor
    return ""


def candidate(name: str, kind: EntityType) -> Mark:
    """What only looks like a name."""
    return Mark(2, Name(name, kind, confirmed=False))
