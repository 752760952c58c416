"""Extract the names that a document defines or marks.

Marks are anchors and signatures of APIs, titles of endpoints and schemas, headings that are names,
terms of glossaries and definition lists, entries of index pages, and code spans. Bold phrases,
capitalized words within a sentence and texts of links are candidates.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

from kbkit.annotation import terms
from kbkit.models import Document, EntityType, Name, SubjectKind
from kbkit.text import subject_key
from kbkit.text.markdown import Block, Kind, text_anchor
from kbkit.text.markdown.structure import heading_text, inline_text, outline, split_anchor

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
SHOUTED = frozenset(terms.WORDS["shouted"].split())


def item_names(
    block: Block, text: str, path: tuple[str, ...], glossary: bool
) -> Iterator[terms.Mark]:
    match = _TERM_ITEM.match(text)
    if match is None:
        return
    anchor = text_anchor(block, text)[1]
    term = match["code"] or match["bold"]
    if match["code"] and not match["colon"]:
        remainder = terms.LINK.sub("", text[match.end() :])
        if not remainder.strip(" \n()[],\\"):  # item of a list of names
            yield from name_of_span(term.strip("`"), path, linked=True)
    elif "`" in term:
        for span in terms.SPAN.finditer(term):
            yield from name_of_span(span[2], path, anchor=anchor, defines=True)
    elif match["colon"] or glossary:
        for part in re.split(r",\s+|\s+\|\s+", inline_text(term).rstrip(": "))[:4]:
            kind = terms.type_of_word(part, path)
            if kind is not None:
                yield terms.definition(part, kind, anchor)
            elif terms.is_term(part) and (glossary or not part.islower() or " " in part):
                for name in terms.names_in_term(part):
                    yield terms.definition(name, EntityType.TERM, anchor, confirmed=glossary)


def prose_names(text: str, path: tuple[str, ...]) -> Iterator[terms.Mark]:
    yield from span_names(text, path)
    without_spans = terms.SPAN.sub(" ", text)
    for link in terms.LINK.finditer(without_spans):
        words = terms.NUMBER.sub("", inline_text(link[1]))
        if terms.ADDRESS.match(words):
            continue
        if "(" in words and (signed := terms.signature(words)):
            yield terms.Mark(1, Name(f"{signed}()", terms.type_of(signed) or EntityType.SYMBOL))
        else:
            yield from _candidates(words, path)
    without_spans = terms.ADDRESS.sub(" ", terms.LINK.sub(r"\1", without_spans))
    for bold in _BOLD.finditer(without_spans):
        yield from _candidates(inline_text(bold[1]).rstrip(":"), path)
    yield from _standard_names(without_spans.replace("\\", "").replace("*", " "), path)


def _standard_names(text: str, path: tuple[str, ...]) -> Iterator[terms.Mark]:
    for match in _WRITTEN_NAME.finditer(text):
        word = match[0]
        if word.isupper() and "_" not in word:
            if word.lower() not in SHOUTED and not word.startswith("PEP"):
                yield terms.candidate(word, EntityType.TERM)
        elif match["call"]:
            yield terms.Mark(1, Name(word, EntityType.SYMBOL))
        else:
            yield terms.candidate(word, terms.type_of(word, path) or EntityType.SYMBOL)
    for capitals in _CAPITALS.finditer(text):
        if terms.is_term(capitals[1]):
            yield terms.candidate(capitals[1], EntityType.NAME)
    for flag in _LONG_FLAG.finditer(text):
        yield terms.Mark(1, Name(flag[0], EntityType.FLAG))
    for standard in _STANDARD.finditer(text):
        yield terms.Mark(1, Name(standard[0].strip(), EntityType.NAME))


def _candidates(words: str, path: tuple[str, ...]) -> Iterator[terms.Mark]:
    if (
        terms.is_term(words)
        and len(words.split()) <= 4
        and not (words.islower() and words.isalpha())
    ):
        kind = EntityType.NAME if terms.is_single(words) else EntityType.TERM
        for part in terms.names_in_term(words):
            kind_of_part = terms.type_of_word(part, path) or kind
            is_flag = kind_of_part is EntityType.FLAG
            yield (
                terms.Mark(1, Name(part, kind_of_part))
                if is_flag
                else terms.candidate(part, kind_of_part)
            )


def span_names(text: str, path: tuple[str, ...]) -> Iterator[terms.Mark]:
    for span in terms.SPAN.finditer(text):
        linked = text[span.start() - 1 : span.start()] == "["
        yield from name_of_span(span[2], path, linked=linked)


def name_of_span(
    code: str,
    path: tuple[str, ...],
    *,
    anchor: str = "",
    defines: bool = False,
    linked: bool = False,
) -> Iterator[terms.Mark]:
    code = code.strip()
    if code[:1] == "-":
        for flag in terms.FLAG.findall(code)[:4]:
            yield terms.Mark(0 if defines else 1, Name(flag, EntityType.FLAG, defines, anchor))
        return
    signed = terms.signature(code) if "(" in code else ""
    name = f"{signed}()" if signed else code
    kind = terms.type_of(name, path)
    if expanded := _EXPANDED.fullmatch(name):
        name = expanded[1] or expanded[2]
    if kind is None or name.lower() in terms.LITERALS:
        return
    low = code.lower()
    if len(code) == 1 or (not defines and (len(code) <= 2 or terms.is_everywhere(low))):
        return
    # a single lower-case word may be a parameter or an ordinary word
    confirmed = linked or defines or not (code.replace("-", "").isalpha() and code.islower())
    rank = (0 if defines else 1) if confirmed else 2
    yield terms.Mark(rank, Name(name, kind, defines, anchor, confirmed))


def declared_names(code: str) -> Iterator[terms.Mark]:
    for match in re.finditer(
        r"^[>\s]*(?:[a-z]\w*[ *]+){1,3}\**([A-Za-z_]\w{2,60})\(", code, re.MULTILINE
    ):
        yield terms.definition(match[1], EntityType.SYMBOL)


REVISION = 4
"""Version of these rules; raise it to read names again."""
MAX_NAMES = 800
"""Maximum names of one document; definitions come first."""
_WHOLE_MANUAL = 200_000  # minimum characters of a page with a whole manual
_CHAPTERS = 3  # chapters of a whole manual that must contain a candidate
_CHARACTERS_PER_NAME = 150  # longer documents may have more than `MAX_NAMES`
MAX_LENGTH = 100
"""Characters of a name."""
_MAX_READ = 2_000_000  # characters of a document
_SPHINX = re.compile(
    r"(?:(?P<term>term)|(?P<module>module)|(?P<flag>cmdoption)|(?P<envvar>envvar)|(?P<index>index)"
    r"|std-(?P<std>[a-z]+)|(?:c|cpp|js|rst|py)(?=\.))[-.](?P<rest>.+)"
)
_STD_KINDS = {name: EntityType(kind) for name, kind in terms.WORDS["sphinx"].items()}
_KIND_TITLE = re.compile(
    r"(?:the\s+)?[\"'“‘`]?(?P<name>[^\s\"'”’`]{2,60}(?:\s[^\s\"'”’`]{1,30})??)[\"'”’`]?\s+"
    rf"(?P<kind>{terms.WORDS['kind_titles']})s?",
    re.IGNORECASE,
)
_DIGIT_FLAG = re.compile(r"-\d(?!\S)")
_LOWER_WORD = re.compile(r"(?<![\w./#`-])[a-z]{3,}(?![\w/(`-])")
_GLOSSARY = re.compile(r"\b(?:glossar|terminolog|dictionar)", re.IGNORECASE)
_INDEX = re.compile(
    r"(?:general |module |keyword |directive |alphabetical )*index\b|index\s*[–-]", re.IGNORECASE
)
_INDEX_REST = re.compile(r"\s*[,(–—].*$")
_LOWER_HEADING = re.compile(r"([a-z][a-z0-9]*(?:[-_][a-z0-9]+)*)(?:\s*\(.*|,? [A-Z-].*)?$")
_NAMELESS = terms.GENERIC | terms.STOP_WORDS
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def names_of(document: Document) -> list[Name]:
    """Return the names of a document, definitions first, each normal form once."""
    best: dict[str, terms.Mark] = {}
    chapters_by_key: dict[str, set[str]] = {}
    is_manual = len(document.content) >= _WHOLE_MANUAL
    ordinary = set(_LOWER_WORD.findall(document.content[:_MAX_READ]))
    for mark in _marks(document):
        text = " ".join(_CONTROL.sub(" ", mark.name.name).split())
        if not text or len(text) > MAX_LENGTH or text.lower() in terms.LITERALS:
            continue
        if text.isupper() and text.lower() in _NAMELESS:
            continue  # a heading of manual pages, such as NOTES
        if mark.name.type is EntityType.NAME and terms.is_single(text) and text.lower() in ordinary:
            continue  # capitalized here, but an ordinary word elsewhere
        if text != mark.name.name:
            mark = terms.Mark(mark.rank, replace(mark.name, name=text))  # noqa: PLW2901
        key = subject_key(SubjectKind.ENTITY, text)
        if is_manual and mark.rank == 2 and key:  # chapters count as pages
            chapters = chapters_by_key.setdefault(key, set())
            chapters.add(mark.chapter)
            if len(chapters) >= _CHAPTERS:
                mark = terms.Mark(1, replace(mark.name, confirmed=True))  # noqa: PLW2901
        previous = best.get(key)
        if key and (previous is None or mark.rank < previous.rank):
            best[key] = mark
    ranked = sorted(best.values(), key=lambda mark: mark.rank)  # stable: in order of the text
    limit = max(MAX_NAMES, len(document.content) // _CHARACTERS_PER_NAME)
    return [mark.name for mark in ranked[:limit]]


def _marks(document: Document) -> Iterator[terms.Mark]:
    metadata = document.metadata
    yield from _metadata_names(document)
    content = document.content[:_MAX_READ].replace("\0", "")
    if metadata.get("part") == "index" or _is_index(document):
        yield from _index_names(content)
        return
    glossary = bool(_GLOSSARY.search(document.title) or _GLOSSARY.search(_last(document.uri)))
    structure = outline(content)
    headings = iter(structure.headings)
    path: tuple[str, ...] = ()
    for block in structure.blocks:
        if block.kind is Kind.HEADING and block.outermost:
            heading = next(headings)
            above, path = heading.path[:-1], heading.path
            own_anchor = split_anchor(block.title)[1]
            yield from _heading_names(block, own_anchor, above, glossary)
        elif block.kind is Kind.TEXT:
            text = content[block.start : block.end]
            if block.item:
                yield from item_names(block, text, path, glossary)
            for mark in prose_names(text, path):
                yield mark._replace(chapter=path[1] if len(path) > 1 else "")
        elif block.kind is Kind.TABLE:
            yield from span_names(content[block.start : block.end], path)
        elif block.kind is Kind.FENCE and block.outermost is False:
            yield from declared_names(content[block.start : block.end])


def _last(uri: str) -> str:
    return uri.rstrip("/").rpartition("/")[2]


def _is_index(document: Document) -> bool:
    page_name = _last(document.uri)
    return bool(
        _INDEX.fullmatch(document.title.strip())
        or (_INDEX.match(document.title.strip()) and "–" in document.title)
        or re.search(r"genindex|modindex|keyword_index|[-_]index\.", page_name)
    )


def _metadata_names(document: Document) -> Iterator[terms.Mark]:
    metadata = document.metadata
    method, path = metadata.get("method"), metadata.get("path")
    if isinstance(method, str) and isinstance(path, str):
        yield terms.definition(f"{method.upper()} {path}", EntityType.ENDPOINT)
    operation = metadata.get("operation_id")
    if isinstance(operation, str):
        yield terms.definition(operation, EntityType.SYMBOL)
    if metadata.get("part") == "schema":
        yield terms.definition(document.title.removesuffix(" schema"), EntityType.SCHEMA)
    if document.uri.startswith("python:"):
        yield terms.definition(
            document.title, terms.type_of(document.title) or EntityType.SYMBOL, document.title
        )


def _heading_names(
    block: Block, anchor: str, above: tuple[str, ...], glossary: bool
) -> Iterator[terms.Mark]:
    title = split_anchor(block.title)[0]
    text = terms.NUMBER.sub("", heading_text(title)) or heading_text(title)
    if from_anchor := list(_anchor_names(text, anchor)):
        yield from from_anchor
        return
    signed = terms.signature(text)
    if glossary and block.level > 1 and terms.is_phrase(text) and len(text) > 1:
        for part in terms.names_in_term(text):
            yield terms.definition(part, EntityType.TERM, anchor)
        return
    if text.isupper() and text.lower() in SHOUTED:
        return
    if signed and (text != signed or terms.looks_like_code(signed) or title.startswith("`")):
        yield terms.definition(signed, terms.type_of(signed, above) or EntityType.SYMBOL, anchor)
        return
    lower_match = _LOWER_HEADING.match(text)
    if lower_match and (block.level > 1 or text != lower_match[1] or not text.isalpha()):
        # titles are capitalized, unless they are names
        if not terms.is_everywhere(lower_match[1]):
            yield terms.definition(lower_match[1], EntityType.SYMBOL, anchor)
        return
    if (titled := _KIND_TITLE.fullmatch(text)) and (name := _owner_name(titled, title, anchor)):
        word = titled["kind"].lower()
        kinds = (kind for kind, words in terms.KIND_WORDS.items() if word in words)
        yield terms.definition(name, next(kinds, EntityType.SYMBOL), anchor)
        return
    for span in terms.SPAN.finditer(title):
        yield from name_of_span(span[2], above, anchor=anchor, defines=span[0] == title)
    if terms.is_term(text) and len(text.split()) <= 4 and not (terms.is_single(text) and above):
        is_title = block.level == 1 and not above and not terms.is_single(text)
        for part in terms.names_in_term(text):
            yield terms.definition(part, EntityType.TERM, anchor, confirmed=is_title)


def _anchor_names(text: str, anchor: str) -> Iterator[terms.Mark]:
    match = _SPHINX.fullmatch(anchor)
    roles = match.groupdict("") if match else defaultdict[str, str](str, rest=anchor)
    bare, std = roles["rest"], roles["std"]
    flags = terms.FLAG.findall(text) or (_DIGIT_FLAG.findall(text) if roles["flag"] else [])
    if roles["term"] or std == "term":
        for part in terms.names_in_term(text):
            yield terms.definition(part, EntityType.TERM, anchor)
    elif flags and (text.startswith("-") or roles["flag"]):
        for flag in flags[:4]:
            yield terms.definition(flag, EntityType.FLAG, anchor)
    elif roles["envvar"]:
        yield terms.definition(bare, EntityType.VARIABLE, anchor)
    elif roles["module"] and terms.IDENTIFIER.fullmatch(bare):
        yield terms.definition(bare, EntityType.SYMBOL, anchor)
    elif std and (word := terms.IDENTIFIER.match(text)):
        yield terms.definition(word[0], _STD_KINDS.get(std, EntityType.NAME), anchor)
    elif (signed := terms.signature(text)) and anchor and (full := terms.anchor_name(signed, bare)):
        yield terms.definition(full, terms.type_of(full) or EntityType.SYMBOL, anchor)


def _owner_name(match: re.Match[str], title: str, anchor: str) -> str:
    name = match["name"]
    names_before = (
        title.lstrip("Tthe ")[:1] in "\"'“‘`"
        or terms.looks_like_code(name)
        or (anchor.lower() == name.lower() and not match[0].endswith("s"))
    )
    return "" if not names_before or name.lower() in _NAMELESS else name


def _index_names(content: str) -> Iterator[terms.Mark]:
    """Read entries of an index page: qualified names of symbols, and words of other entries."""
    for link in terms.LINK.finditer(content):
        words = _INDEX_REST.sub("", inline_text(link[1])).strip(" :")
        target = link[2].partition("#")[2]
        if match := _SPHINX.fullmatch(target):
            target = match["rest"]
        if not words or len(words) == 1 or terms.ADDRESS.match(words):
            continue
        signed = terms.signature(words)
        if signed and target and (full_name := terms.anchor_name(signed, target)):
            yield terms.Mark(1, Name(full_name, terms.type_of(full_name) or EntityType.SYMBOL))
        elif (kind := terms.type_of_word(words)) is not None:
            yield terms.Mark(1, Name(words, kind))
        elif terms.is_term(words) and not terms.is_single(words):
            yield terms.Mark(1, Name(words, EntityType.TERM))
