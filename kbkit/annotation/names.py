"""The names that a document gives: what its marks show to be one.

Marks are anchors and signatures of APIs, titles of endpoints and schemas, headings that name
something, terms of glossaries and definition lists, entries of index pages, code spans. What only
looks like a name (a phrase in bold, a word with a capital within a sentence, the text of a link)
is a candidate.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from kbkit.annotation.name_types import looks_like_code, type_of, type_of_kind_word, type_of_word
from kbkit.annotation.terms import (
    GENERIC,
    is_everywhere,
    is_phrase,
    is_single,
    is_term,
    names_in_term,
)
from kbkit.markdown.blocks import Block, Kind, text_anchor
from kbkit.markdown.plain_text import inline_text
from kbkit.markdown.structure import heading_text, outline, split_anchor
from kbkit.models import Document, EntityType, Name, SubjectKind
from kbkit.text.stopwords import stop_words
from kbkit.text.subject_keys import subject_key

REVISION = 3
"""Counts changes of these rules: names of documents are read again."""

MOST_NAMES = 800
"""Names of one document; those that it defines come first."""
_WHOLE_MANUAL = 200_000
"""Characters of a page from which on it is a whole manual."""
_CHAPTERS = 3
"""Chapters of such a page that have to give a candidate; of others, two pages."""
_LETTERS_OF_ONE = 150
"""Characters of a document, however long, that have one name more: a whole manual may be a page."""
LONGEST = 100
"""Characters of a name."""
_MOST_READ = 2_000_000
"""Characters of a document that are read."""

_SPHINX = re.compile(
    r"(?:(?P<term>term)|(?P<module>module)|(?P<flag>cmdoption)|(?P<envvar>envvar)|(?P<index>index)"
    r"|std-(?P<std>[a-z]+)|(?:c|cpp|js|rst|py)(?=\.))[-.](?P<rest>.+)"
)
_STD_KINDS = {
    "setting": EntityType.SETTING, "envvar": EntityType.VARIABLE, "option": EntityType.FLAG,
    "term": EntityType.TERM, "confval": EntityType.SETTING, "directive": EntityType.SETTING,
}  # fmt: skip
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
_IDENTIFIER = re.compile(_DOTTED)
_KIND_TITLE = re.compile(
    r"(?:the\s+)?[\"'“‘`]?(?P<name>[^\s\"'”’`]{2,60}(?:\s[^\s\"'”’`]{1,30})??)[\"'”’`]?\s+"
    r"(?P<kind>directive|command|option|setting|function|method|statement|module|class|event"
    r"|property|attribute|environment variable|variable|error|exception|macro|tag|filter|parameter"
    r"|header|pragma|clause|operator|keyword|package|program|utility|flag|schema|object|file)s?",
    re.IGNORECASE,
)
_FLAG = re.compile(r"(?<![\w-])(?:--[A-Za-z][\w-]*|-[A-Za-z]\w{0,30})(?![\w-])")
_DIGIT_FLAG = re.compile(r"-\d(?!\S)")
_NUMBER = re.compile(
    r"\A(?:(?:Chapter|Section|Appendix|Part|§)\s+[\dA-Z]+[.:]?\s+|(?:\d+|[A-Z](?=\.))(?:\.\d+)*\.?\s+)(?=\S)"
)
_SPAN = re.compile(r"(?<![`\\])(`+)(?!`)(.{1,130}?)(?<!`)\1(?!`)")
_BOLD = re.compile(r"(?<![*\w\\])\*\*(?=[^\s*])([^*\n]{2,60}?)(?<=[^\s*\\])\*\*(?![*\w])")
_LINK = re.compile(r"(?<![!\\])\[([^\[\]\n]{2,80})\]\(([^()\s]*(?:\([^()\s]*\)[^()\s]*)*)\)")
_TERM_ITEM = re.compile(
    r"\s*[-*+]\s+(?:\*\*(?P<bold>.{1,200}?)\*\*|(?P<code>`+[^`\n].{0,200}?`+))(?P<colon>:)?"
)
_WRITTEN_NAME = re.compile(
    r"(?<![\w./@:#-])(?:[A-Za-z]\w*[a-z0-9][A-Z]\w*|[A-Z]{2,}[a-z]{2,}\w*|[A-Za-z]+(?:_[A-Za-z0-9]+)+|[A-Z]{2,8})(?P<call>\(\))?(?![\w/@-])"
)
_CAPITALS = re.compile(
    r"(?<=[a-z,] )([A-Z][a-z]+\.(?:js|io|py|NET)"
    r"|(?:[A-Z][a-z]+|[A-Z]{2,6})(?: (?:[A-Z][a-z]+|[A-Z]{2,6}))*)(?![\w-]| \d)"
)
_LONG_FLAG = re.compile(r"(?<![\w-])--[a-z][a-z0-9]+(?:-[a-z0-9]+)*(?![\w-])")
_STANDARD = re.compile(
    r"(?<!\w)(?:(?:RFC|PEP|ISO|IEEE|ECMA|FIPS)[ -]\d+(?:-\d+)?|CVE-\d{4}-\d+)(?!\w)"
)
_LOWER_WORD = re.compile(r"(?<![\w./#`-])[a-z]{3,}(?![\w/(`-])")
_ADDRESS = re.compile(r"(?:https?|ftp|file|mailto):\S*")
_GLOSSARY = re.compile(r"\b(?:glossar|terminolog|dictionar)", re.IGNORECASE)
_INDEX = re.compile(
    r"(?:general |module |keyword |directive |alphabetical )*index\b|index\s*[–-]", re.IGNORECASE
)
_EXPANDED = re.compile(r"\$\{([A-Za-z_]\w+)\}|%([A-Za-z_]\w+)%")
_INDEX_REST = re.compile(r"\s*[,(–—].*$")

_LOWER_HEADING = re.compile(r"([a-z][a-z0-9]*(?:[-_][a-z0-9]+)*)(?:\s*\(.*|,? [A-Z-].*)?$")

_LITERALS = frozenset(
    str.split("""
        true false none null nil self this undefined nan yes no on off 0 1 foo bar baz foo() bar()
        """)
)
_SHOUTED = frozenset(
    str.split(
        "ok no not and or must may should note warning todo fixme id am pm us uk eu however always"
        " only never"
    )
)
_STOP_WORDS = stop_words("english")
_NAMELESS = GENERIC | _STOP_WORDS


_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


class _Mark(NamedTuple):
    """A name with how much it is one: 0 for definitions, 1 for marks, 2 for candidates."""

    rank: int
    name: Name
    chapter: str = ""


def names_of(document: Document) -> list[Name]:
    """The names that a document gives, what it defines first, each normal form once.

    Args:
        document: With its content.

    Returns:
        At most `MOST_NAMES`, or one for each `_LETTERS_OF_ONE` characters. What a person wrote in
        bold, with a capital or as a link is a candidate (``confirmed`` is false); code spans,
        signatures, terms and titles are names.
    """
    best: dict[str, _Mark] = {}
    seen: dict[str, set[str]] = {}
    whole = len(document.content) >= _WHOLE_MANUAL
    ordinary = set(_LOWER_WORD.findall(document.content[:_MOST_READ]))
    for mark in _marks(document):
        text = " ".join(_CONTROL.sub(" ", mark.name.name).split())
        if not text or len(text) > LONGEST or text.lower() in _LITERALS:
            continue
        if mark.name.type is EntityType.NAME and is_single(text) and text.lower() in ordinary:
            continue  # with a capital for some reason, and without one elsewhere
        if text != mark.name.name:
            mark = _Mark(mark.rank, replace(mark.name, name=text))  # noqa: PLW2901
        key = subject_key(SubjectKind.ENTITY, text)
        if whole and mark.rank == 2 and key:  # its chapters are what pages are elsewhere
            chapters = seen.setdefault(key, set())
            chapters.add(mark.chapter)
            if len(chapters) >= _CHAPTERS:
                mark = _Mark(1, replace(mark.name, confirmed=True))  # noqa: PLW2901
        known = best.get(key)
        if key and (known is None or mark.rank < known.rank):
            best[key] = mark
    ranked = sorted(best.values(), key=lambda mark: mark.rank)  # stable: in order of the text
    most = max(MOST_NAMES, len(document.content) // _LETTERS_OF_ONE)
    names = dict.fromkeys(mark.name.name for mark in ranked[:most])
    by_name = {mark.name.name: mark.name for mark in reversed(ranked)}
    return [by_name[name] for name in names]


def _marks(document: Document) -> Iterator[_Mark]:
    metadata = document.metadata
    yield from _of_metadata(document)
    content = document.content[:_MOST_READ].replace("\0", "")
    if metadata.get("part") == "index" or _is_index(document):
        yield from _of_index(content)
        return
    glossary = bool(_GLOSSARY.search(document.title) or _GLOSSARY.search(_last(document.uri)))
    structure = outline(content)
    headings = iter(structure.headings)
    path: tuple[str, ...] = ()
    for block in structure.blocks:
        if block.kind is Kind.HEADING and block.outermost:
            heading = next(headings)
            above, path = heading.path[:-1], heading.path
            own = split_anchor(block.title)[1]
            yield from _of_heading(block, own, above, glossary)
        elif block.kind is Kind.TEXT:
            text = content[block.start : block.end]
            if block.item:
                yield from _of_item(block, text, path, glossary)
            for mark in _of_prose(text, path):
                yield mark._replace(chapter=path[1] if len(path) > 1 else "")
        elif block.kind is Kind.TABLE:
            yield from _of_spans(content[block.start : block.end], path)
        elif block.kind is Kind.FENCE and block.outermost is False:
            yield from _of_declarations(content[block.start : block.end])


def _last(uri: str) -> str:
    return uri.rstrip("/").rpartition("/")[2]


def _is_index(document: Document) -> bool:
    last = _last(document.uri)
    return bool(
        _INDEX.fullmatch(document.title.strip())
        or (_INDEX.match(document.title.strip()) and "–" in document.title)
        or re.search(r"genindex|modindex|keyword_index|[-_]index\.", last)
    )  # fmt: skip


def _of_metadata(document: Document) -> Iterator[_Mark]:
    """What OpenAPI descriptions and packages say of their documents."""
    metadata = document.metadata
    method, path = metadata.get("method"), metadata.get("path")
    if isinstance(method, str) and isinstance(path, str):
        yield _defined(f"{method.upper()} {path}", EntityType.ENDPOINT)
    operation = metadata.get("operation_id")
    if isinstance(operation, str):
        yield _defined(operation, EntityType.SYMBOL)
    if metadata.get("part") == "schema":
        yield _defined(document.title.removesuffix(" schema"), EntityType.SCHEMA)
    if document.uri.startswith("python:"):
        yield _defined(document.title, type_of(document.title) or EntityType.SYMBOL, document.title)


def _defined(name: str, kind: EntityType, anchor: str = "", *, confirmed: bool = True) -> _Mark:
    return _Mark(0 if confirmed else 2, Name(name, kind, True, anchor, confirmed))


def _of_heading(
    block: Block, anchor: str, above: tuple[str, ...], glossary: bool
) -> Iterator[_Mark]:
    title = split_anchor(block.title)[0]
    text = _NUMBER.sub("", heading_text(title)) or heading_text(title)
    if told := list(_of_anchor(text, anchor)):
        yield from told
        return
    signed = _signature(text)
    if glossary and block.level > 1 and is_phrase(text) and len(text) > 1:
        for part in names_in_term(text):
            yield _defined(part, EntityType.TERM, anchor)
        return
    if signed and (text != signed or looks_like_code(signed) or title.startswith("`")):
        yield _defined(signed, type_of(signed, above) or EntityType.SYMBOL, anchor)
        return
    written = _LOWER_HEADING.match(text)
    if written and (block.level > 1 or text != written[1] or not text.isalpha()):
        # titles begin with a capital, unless they are names
        if not is_everywhere(written[1]):
            yield _defined(written[1], EntityType.SYMBOL, anchor)
        return
    if (named := _KIND_TITLE.fullmatch(text)) and (of := _named_of(named, title, anchor)):
        yield _defined(of, type_of_kind_word(named["kind"]), anchor)
        return
    for span in _SPAN.finditer(title):
        yield from _of_span(span[2], above, anchor=anchor, defines=span[0] == title)
    if is_term(text) and len(text.split()) <= 4 and not (is_single(text) and above):
        first = block.level == 1 and not above and not is_single(text)
        for part in names_in_term(text):
            yield _defined(part, EntityType.TERM, anchor, confirmed=first)


def _of_anchor(text: str, anchor: str) -> Iterator[_Mark]:
    """What a heading names that has an anchor as generators make them."""
    found = _SPHINX.fullmatch(anchor)
    bare = found["rest"] if found else anchor
    std = found["std"] if found else ""
    flags = _FLAG.findall(text)
    if not flags and found and found["flag"]:
        flags = _DIGIT_FLAG.findall(text)
    if found and (found["term"] or std == "term"):
        for part in names_in_term(text):
            yield _defined(part, EntityType.TERM, anchor)
    elif flags and (text.startswith("-") or (found and found["flag"])):
        for flag in flags[:4]:
            yield _defined(flag, EntityType.FLAG, anchor)
    elif found and found["envvar"]:
        yield _defined(bare, EntityType.VARIABLE, anchor)
    elif found and found["module"] and _IDENTIFIER.fullmatch(bare):
        yield _defined(bare, EntityType.SYMBOL, anchor)
    elif std and (word := _IDENTIFIER.match(text)):
        yield _defined(word[0], _STD_KINDS.get(std, EntityType.NAME), anchor)
    elif (signed := _signature(text)) and anchor and (whole := _anchored(signed, bare)):
        yield _defined(whole, type_of(whole) or EntityType.SYMBOL, anchor)


def _named_of(found: re.Match[str], title: str, anchor: str) -> str:
    """The name of a heading like ``The "deserialize" method``, if it is one."""
    name = found["name"]
    told = (
        title.lstrip("Tthe ")[:1] in "\"'“‘`"
        or looks_like_code(name)
        or (anchor.lower() == name.lower() and not found[0].endswith("s"))
    )
    return "" if not told or name.lower() in _NAMELESS else name


def _signature(text: str) -> str:
    """The identifier that a heading consists of or declares, or ``""``."""
    text = text.strip("` ")
    stripped = _WORDS_BEFORE.sub("", text, count=1) if not _IDENTIFIER.fullmatch(text) else text
    if found := _IDENTIFIER.fullmatch(
        stripped.partition("(")[0].partition(" = ")[0].partition(": ")[0].strip()
    ):
        called = "(" in stripped or " = " in stripped
        if called or " " not in stripped:
            return found[0]
    if found := _SIGNATURE.fullmatch(text):
        before = found["before"].split()
        prose = [word for word in before if word.lower() in _STOP_WORDS]
        glued = text[found.start("call") - 1] != " "
        return found["name"] if glued and not prose else ""
    return ""


def _anchored(signed: str, anchor: str) -> str:
    """The qualified name that an anchor gives a signature, or ``""``."""
    if not _IDENTIFIER.fullmatch(anchor):
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


def _of_item(block: Block, text: str, path: tuple[str, ...], glossary: bool) -> Iterator[_Mark]:
    """The term that an item of a list begins with."""
    found = _TERM_ITEM.match(text)
    if found is None:
        return
    anchor = text_anchor(block, text)[1]
    if found["code"]:
        if found["colon"]:
            for span in _SPAN.finditer(found["code"]):
                yield from _of_span(span[2], path, anchor=anchor, defines=True)
        elif not _LINK.sub("", text[found.end() :]).strip(" \n()[],\\"):  # one of a list of names
            yield from _of_span(found["code"].strip("`"), path, linked=True)
        return
    term = inline_text(found["bold"]).rstrip(": ")
    if "`" in found["bold"]:
        for span in _SPAN.finditer(found["bold"]):
            yield from _of_span(span[2], path, anchor=anchor, defines=True)
        return
    if not found["colon"] and not glossary:
        return
    for part in re.split(r",\s+|\s+\|\s+", term)[:4]:
        kind = type_of_word(part, path)
        if kind is not None:
            yield _defined(part, kind, anchor)
        elif is_term(part) and (glossary or not part.islower() or " " in part):
            for one in names_in_term(part):
                yield _defined(one, EntityType.TERM, anchor, confirmed=glossary)


def _of_prose(text: str, path: tuple[str, ...]) -> Iterator[_Mark]:
    yield from _of_spans(text, path)
    plain = _SPAN.sub(" ", text)
    for link in _LINK.finditer(plain):
        words = _NUMBER.sub("", inline_text(link[1]))
        if _ADDRESS.match(words):
            continue
        if "(" in words and (signed := _signature(words)):
            yield _Mark(1, Name(f"{signed}()", type_of(signed) or EntityType.SYMBOL))
        else:
            yield from _candidates(words, path)
    plain = _ADDRESS.sub(" ", _LINK.sub(r"\1", plain))
    if "**" in plain:
        for bold in _BOLD.finditer(plain):
            yield from _candidates(inline_text(bold[1]).rstrip(":"), path)
    yield from _of_words(plain.replace("\\", "").replace("*", " "), path)


def _of_words(plain: str, path: tuple[str, ...]) -> Iterator[_Mark]:
    """Words that are written as names are."""
    for written in _WRITTEN_NAME.finditer(plain):
        word = written[0]
        if word.isupper() and "_" not in word:
            if word.lower() not in _SHOUTED and not word.startswith("PEP"):
                yield _candidate(word, EntityType.TERM)
        elif written["call"]:
            yield _Mark(1, Name(word, EntityType.SYMBOL))
        else:
            yield _candidate(word, type_of(word, path) or EntityType.SYMBOL)
    for capitals in _CAPITALS.finditer(plain):
        if is_term(capitals[1]):
            yield _candidate(capitals[1], EntityType.NAME)
    for flag in _LONG_FLAG.finditer(plain):
        yield _Mark(1, Name(flag[0], EntityType.FLAG))
    for standard in _STANDARD.finditer(plain):
        yield _Mark(1, Name(standard[0].strip(), EntityType.NAME))


def _candidates(words: str, path: tuple[str, ...]) -> Iterator[_Mark]:
    """What may name something: words in bold or of a link."""
    if is_term(words) and len(words.split()) <= 4 and not (words.islower() and words.isalpha()):
        kind = EntityType.NAME if is_single(words) else EntityType.TERM
        for part in names_in_term(words):
            told = type_of_word(part, path) or kind
            known = told is EntityType.FLAG
            yield _Mark(1, Name(part, told)) if known else _candidate(part, told)


def _candidate(name: str, kind: EntityType) -> _Mark:
    return _Mark(2, Name(name, kind, confirmed=False))


def _of_spans(text: str, path: tuple[str, ...]) -> Iterator[_Mark]:
    if "`" in text:
        for span in _SPAN.finditer(text):
            linked = text[span.start() - 1 : span.start()] == "["
            yield from _of_span(span[2], path, linked=linked)


def _of_span(
    code: str,
    path: tuple[str, ...],
    *,
    anchor: str = "",
    defines: bool = False,
    linked: bool = False,
) -> Iterator[_Mark]:
    """The name that a code span is."""
    code = code.strip()
    if code[:1] == "-":
        for flag in _FLAG.findall(code)[:4]:
            yield _Mark(0 if defines else 1, Name(flag, EntityType.FLAG, defines, anchor))
        return
    signed = _signature(code) if "(" in code else ""
    name = f"{signed}()" if signed else code
    kind = type_of(name, path)
    if expanded := _EXPANDED.fullmatch(name):
        name = expanded[1] or expanded[2]
    if kind is None or name.lower() in _LITERALS:
        return
    low = code.lower()
    if len(code) == 1 or (not defines and (len(code) <= 2 or is_everywhere(low))):
        return
    # one lower-case word may be the name of a parameter, or a word
    confirmed = linked or defines or not (code.replace("-", "").isalpha() and code.islower())
    rank = (0 if defines else 1) if confirmed else 2
    yield _Mark(rank, Name(name, kind, defines, anchor, confirmed))


def _of_declarations(code: str) -> Iterator[_Mark]:
    """Declarations in a quoted block of code, as generators of C manuals write them."""
    for found in re.finditer(
        r"^[>\s]*(?:[a-z]\w*[ *]+){1,3}\**([A-Za-z_]\w{2,60})\(", code, re.MULTILINE
    ):
        yield _defined(found[1], EntityType.SYMBOL)


def _of_index(content: str) -> Iterator[_Mark]:
    """The entries of an index page: of symbols the qualified name, of all else the words."""
    for link in _LINK.finditer(content):
        words = _INDEX_REST.sub("", inline_text(link[1])).strip(" :")
        target = link[2].partition("#")[2]
        if found := _SPHINX.fullmatch(target):
            target = found["rest"]
        if not words or len(words) == 1 or _ADDRESS.match(words):
            continue
        signed = _signature(words)
        if signed and target and (whole := _anchored(signed, target)):
            yield _Mark(1, Name(whole, type_of(whole) or EntityType.SYMBOL))
        elif (kind := type_of_word(words)) is not None:
            yield _Mark(1, Name(words, kind))
        elif is_term(words) and not is_single(words):
            yield _Mark(1, Name(words, EntityType.TERM))
