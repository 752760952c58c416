"""Extract names from prose: list items, code spans, declarations, capitalized words."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kbkit.annotation.terms import (
    ADDRESS,
    FLAG,
    LINK,
    LITERALS,
    NUMBER,
    SPAN,
    Mark,
    candidate,
    defined,
    is_everywhere,
    is_single,
    is_term,
    names_in_term,
    signature,
    type_of,
    type_of_word,
)
from kbkit.markdown.blocks import Block, text_anchor
from kbkit.markdown.plain_text import inline_text
from kbkit.models import EntityType, Name

_BOLD = re.compile(r"(?<![*\w\\])\*\*(?=[^\s*])([^*\n]{2,60}?)(?<=[^\s*\\])\*\*(?![*\w])")
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
_EXPANDED = re.compile(r"\$\{([A-Za-z_]\w+)\}|%([A-Za-z_]\w+)%")
SHOUTED = frozenset(
    str.split(
        "ok no not and or must may should note warning todo fixme id am pm us uk eu however always"
        " only never all any info faq"
    )
)


def of_item(block: Block, text: str, path: tuple[str, ...], glossary: bool) -> Iterator[Mark]:
    found = _TERM_ITEM.match(text)
    if found is None:
        return
    anchor = text_anchor(block, text)[1]
    if found["code"]:
        if found["colon"]:
            for span in SPAN.finditer(found["code"]):
                yield from of_span(span[2], path, anchor=anchor, defines=True)
        elif not LINK.sub("", text[found.end() :]).strip(" \n()[],\\"):  # one of a list of names
            yield from of_span(found["code"].strip("`"), path, linked=True)
        return
    term = inline_text(found["bold"]).rstrip(": ")
    if "`" in found["bold"]:
        for span in SPAN.finditer(found["bold"]):
            yield from of_span(span[2], path, anchor=anchor, defines=True)
        return
    if not found["colon"] and not glossary:
        return
    for part in re.split(r",\s+|\s+\|\s+", term)[:4]:
        kind = type_of_word(part, path)
        if kind is not None:
            yield defined(part, kind, anchor)
        elif is_term(part) and (glossary or not part.islower() or " " in part):
            for one in names_in_term(part):
                yield defined(one, EntityType.TERM, anchor, confirmed=glossary)


def of_prose(text: str, path: tuple[str, ...]) -> Iterator[Mark]:
    yield from of_spans(text, path)
    plain = SPAN.sub(" ", text)
    for link in LINK.finditer(plain):
        words = NUMBER.sub("", inline_text(link[1]))
        if ADDRESS.match(words):
            continue
        if "(" in words and (signed := signature(words)):
            yield Mark(1, Name(f"{signed}()", type_of(signed) or EntityType.SYMBOL))
        else:
            yield from _candidates(words, path)
    plain = ADDRESS.sub(" ", LINK.sub(r"\1", plain))
    if "**" in plain:
        for bold in _BOLD.finditer(plain):
            yield from _candidates(inline_text(bold[1]).rstrip(":"), path)
    yield from _of_words(plain.replace("\\", "").replace("*", " "), path)


def _of_words(plain: str, path: tuple[str, ...]) -> Iterator[Mark]:
    for written in _WRITTEN_NAME.finditer(plain):
        word = written[0]
        if word.isupper() and "_" not in word:
            if word.lower() not in SHOUTED and not word.startswith("PEP"):
                yield candidate(word, EntityType.TERM)
        elif written["call"]:
            yield Mark(1, Name(word, EntityType.SYMBOL))
        else:
            yield candidate(word, type_of(word, path) or EntityType.SYMBOL)
    for capitals in _CAPITALS.finditer(plain):
        if is_term(capitals[1]):
            yield candidate(capitals[1], EntityType.NAME)
    for flag in _LONG_FLAG.finditer(plain):
        yield Mark(1, Name(flag[0], EntityType.FLAG))
    for standard in _STANDARD.finditer(plain):
        yield Mark(1, Name(standard[0].strip(), EntityType.NAME))


def _candidates(words: str, path: tuple[str, ...]) -> Iterator[Mark]:
    if is_term(words) and len(words.split()) <= 4 and not (words.islower() and words.isalpha()):
        kind = EntityType.NAME if is_single(words) else EntityType.TERM
        for part in names_in_term(words):
            told = type_of_word(part, path) or kind
            known = told is EntityType.FLAG
            yield Mark(1, Name(part, told)) if known else candidate(part, told)


def of_spans(text: str, path: tuple[str, ...]) -> Iterator[Mark]:
    if "`" in text:
        for span in SPAN.finditer(text):
            linked = text[span.start() - 1 : span.start()] == "["
            yield from of_span(span[2], path, linked=linked)


def of_span(
    code: str,
    path: tuple[str, ...],
    *,
    anchor: str = "",
    defines: bool = False,
    linked: bool = False,
) -> Iterator[Mark]:
    code = code.strip()
    if code[:1] == "-":
        for flag in FLAG.findall(code)[:4]:
            yield Mark(0 if defines else 1, Name(flag, EntityType.FLAG, defines, anchor))
        return
    signed = signature(code) if "(" in code else ""
    name = f"{signed}()" if signed else code
    kind = type_of(name, path)
    if expanded := _EXPANDED.fullmatch(name):
        name = expanded[1] or expanded[2]
    if kind is None or name.lower() in LITERALS:
        return
    low = code.lower()
    if len(code) == 1 or (not defines and (len(code) <= 2 or is_everywhere(low))):
        return
    # one lower-case word may be the name of a parameter, or a word
    confirmed = linked or defines or not (code.replace("-", "").isalpha() and code.islower())
    rank = (0 if defines else 1) if confirmed else 2
    yield Mark(rank, Name(name, kind, defines, anchor, confirmed))


def of_declarations(code: str) -> Iterator[Mark]:
    for found in re.finditer(
        r"^[>\s]*(?:[a-z]\w*[ *]+){1,3}\**([A-Za-z_]\w{2,60})\(", code, re.MULTILINE
    ):
        yield defined(found[1], EntityType.SYMBOL)
