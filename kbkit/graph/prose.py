"""Find names, links and relations in prose."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import lru_cache, partial
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

from kbkit.stores.catalog.subjects import entity_id

SPOTS = re.compile(
    r"(?<!!)\[((?:[^\[\]\n]|\[[^\[\]\n]{0,200}\]){1,200})\]\(\s*<?([^\s()<>]*(?:\([^\s()]*\)[^\s()<>]*)*)>?"
    r"(?:\s+(?:\"[^\"\n]*\"|'[^'\n]*'))?\s*\)"
    r"|(`+)(?!`)(.{1,200}?)(?<!`)\3(?!`)"
)
"""A link (its text and address), or a code span (its text)."""

_MIN_LIST = 6
"""Minimum links of a list of links, which have only list marks between them."""
_BETWEEN = re.compile(r"(?:\{#[^{}\s]*\}|[\s|•·*+>\-\d.:()\[\]\\])*")
_SEPARATED = re.compile(r"[\n|•·]")
_HEADER = re.compile(r"^[> \t]*\|.*\n(?=[> \t]*\|(?:[ \t:]*-{2,}[ \t:]*\|)+[ \t]*$)", re.MULTILINE)
_FOOTER = re.compile(
    r"^(?:[^\w\n]*(?:copyright|all rights reserved|last (?:updated|modified)|available languages"
    r"|page source)\b.*|.*©.*)$",
    re.IGNORECASE | re.MULTILINE,
)
_LINE_START = re.compile(r"(?:^|[|\n])[\s>*_+-]*$")


def links_of(text: str) -> Iterator[re.Match[str]]:
    """Iterate over the links of a text, as matches of `SPOTS`.

    Leave out table headers, labels before a colon (``[Status:](...)``), footers, and lists of links
    such as contents and indexes.
    """
    excluded = [spot.span() for pattern in (_HEADER, _FOOTER) for spot in pattern.finditer(text)]
    run: list[re.Match[str]] = []
    for spot in SPOTS.finditer(text):
        if spot[2] is None:
            continue
        between = text[run[-1].end() : spot.start()] if run else ""
        if run and not (_BETWEEN.fullmatch(between) and _SEPARATED.search(between)):
            yield from _links_in_prose(text, run, excluded)
            run = []
        run.append(spot)
    yield from _links_in_prose(text, run, excluded)


def _links_in_prose(
    text: str, run: list[re.Match[str]], excluded: list[tuple[int, int]]
) -> Iterator[re.Match[str]]:
    if len(run) >= _MIN_LIST:
        return
    for spot in run:
        label = spot[1].rstrip("*_ ").endswith(":") or (
            text.startswith(":", spot.end())
            and _LINE_START.search(text, max(0, spot.start() - 20), spot.start())
        )
        if not label and not any(start <= spot.start() < end for start, end in excluded):
            yield spot


@lru_cache(maxsize=50_000)
def resolve_href(base: str, href: str) -> tuple[str, str]:
    try:
        address, anchor = urldefrag(urljoin(base, href))
    except ValueError:
        return "", ""
    return address, unquote(anchor)


@lru_cache(maxsize=50_000)
def same_host(uri: str, address: str) -> bool:
    try:
        base, target = urlsplit(uri), urlsplit(address)
    except ValueError:
        return False
    return (base.scheme, base.netloc) == (target.scheme, target.netloc) and bool(base.netloc)


OWNER = -1
"""Placeholder for the section's subject."""

_OPEN, _CLOSE = "\ue000", "\ue001"
_NAME = f"{_OPEN}(\\d+){_CLOSE}"


UNMARKED = {ord(_OPEN): None, ord(_CLOSE): None}
"""Translation that removes the characters of marks from a text."""


_VERBS = tomllib.loads(Path(__file__).with_name("verbs.toml").read_text("utf-8"))

_KIND = rf"(?:\s+(?:{_VERBS['kinds']}))?"
_HELPERS = rf"(?:\s+(?:{_VERBS['helpers']}))*"
_ARTICLE = rf"(?:\s+(?:{_VERBS['articles']}))*"
_LIST = re.compile(rf"\s*(?:,|,?\s+(?:or|and))(?:\s+(?:an?|the))?\s+{_NAME}")
_NEGATION = re.compile(r"\b(?:not|never|cannot|without|rather|no|nor|neither|unless)\b|n['’]t\b")
_LISTED = frozenset({"raises", "contains", "requires", "returns", "handles", "inherits"})

_SUBJECT = rf"{_NAME}{_KIND}{_HELPERS}\s+"
_BEING = r"(?:is|are|was|were|be|been|gets?)(?:\s+\w+ly)?\s+"
_ACTIVE = [
    (relation, re.compile(rf"{_SUBJECT}(?:{active}){_ARTICLE}\s+{_NAME}"))
    for relation, active in _VERBS["active"].items()
]
_PASSIVE = [
    (relation, re.compile(rf"{_SUBJECT}{_BEING}(?:{passive})\s+by{_ARTICLE}\s+{_NAME}"))
    for relation, passive in _VERBS["passive"].items()
]
_PARTS = {
    "begin": _VERBS["begin"],
    "target": rf"{_ARTICLE}\s+{_NAME}",
    "name": _NAME,
    "kind": _KIND,
}
_OF_OWNER = [
    (each["relation"], re.compile(each["pattern"].format_map(_PARTS), re.IGNORECASE))
    for each in _VERBS["of_section"]
]

CUE = re.compile(rf"\b(?:{_VERBS['cue']})", re.IGNORECASE)
"""Cheap test before `find_statements`."""


def find_statements(sentence: str) -> Iterator[tuple[int, str, int]]:
    """Yield the relations in a sentence; the ends are numbers of names."""
    target_ids: set[int] = set()
    for patterns, forward in ((_PASSIVE, False), (_ACTIVE, True)):
        for relation, pattern in patterns:
            for match in pattern.finditer(sentence):
                first_id, second_id = int(match[1]), int(match[2])
                if first_id == second_id or _is_negated(sentence, match):
                    continue
                source, target = (first_id, second_id) if forward else (second_id, first_id)
                for end in (target, *(_listed_ends(sentence, match, relation) if forward else ())):
                    target_ids.add(end)
                    yield source, relation, end
    for relation, pattern in _OF_OWNER:
        for match in pattern.finditer(sentence):
            if int(match[1]) not in target_ids and not _is_negated(sentence, match):
                for end in (int(match[1]), *_listed_ends(sentence, match, relation)):
                    target_ids.add(end)
                    yield OWNER, relation, end


def _listed_ends(sentence: str, match: re.Match[str], relation: str) -> Iterator[int]:
    item = _LIST.match(sentence, match.end()) if relation in _LISTED else None
    while item:
        yield int(item[1])
        item = _LIST.match(sentence, item.end())


def _is_negated(sentence: str, match: re.Match[str]) -> bool:
    """Whether a statement is negated, in its text or just before it."""
    return bool(_NEGATION.search(sentence, max(0, match.start() - 12), match.end()))


_SEPARATOR = re.compile(r"\.|::|->|#|/")
_LITERALS = frozenset({"true", "false", "none", "null", "nil", "self", "this", "undefined"})
_MAX_NAMES = 60


class SectionNames:
    """Find the names of a chunk in its sentences."""

    def __init__(self, entities: Mapping[str, str]) -> None:
        self._entities = entities
        self._suffixes: dict[str, str | None] = {}
        for id_, name in entities.items():
            parts = _SEPARATOR.split(name.partition("(")[0])
            for start in range(1, len(parts)):
                suffix = ".".join(parts[start:])
                self._suffixes[suffix] = None if suffix in self._suffixes else id_
        names = [(name, id_) for id_, name in entities.items() if _stands_alone(name)]
        self._plain = sorted(names, key=lambda pair: (-len(pair[0]), pair))[:_MAX_NAMES]

    def may(self, source: str, relation: str, target: str) -> bool:
        if relation != "returns":
            return True
        of = self._entities.get(source, "")
        return self._entities[target].lower() not in _LITERALS and not of.endswith(
            ("Error", "Exception", "Warning")
        )

    def of(self, written: str) -> str | None:
        id_ = entity_id(written)
        if id_ in self._entities:
            return id_
        return self._suffixes.get(written.partition("(")[0].strip().lstrip(".~"))

    def of_link(self, text: str, anchor: str) -> str | None:
        if anchor and (id_ := entity_id(anchor)) in self._entities:
            return id_
        return self.of(text.translate(_MARKS_OF_SPANS))

    def mark_names(self, sentence: str) -> tuple[str, list[str]]:
        ids: list[str] = []

        def put(id_: str, _: re.Match[str]) -> str:
            ids.append(id_)
            return f"{_OPEN}{len(ids) - 1}{_CLOSE}"

        def spot(match: re.Match[str]) -> str:
            if match[2] is not None:
                words = match[1].translate(_MARKS_OF_SPANS)
                id_ = self.of_link(match[1], unquote(match[2].partition("#")[2]))
            else:
                words = match[4]
                id_ = self.of(words)
            return words if id_ is None else put(id_, match)

        text = " ".join(SPOTS.sub(spot, sentence.translate(UNMARKED)).replace("*", "").split())
        low = text.lower()
        for name, id_ in self._plain:
            if name.lower() in low:
                text = _whole_word(name).sub(partial(put, id_), text)
                low = text.lower()
        return text, ids


_MARKS_OF_SPANS = str.maketrans("", "", "`*\\")


def _stands_alone(name: str) -> bool:
    marked = " " in name or "-" in name[1:] or any(c in name for c in "._:/0123456789")
    return len(name) > 3 and (marked or not name.islower())


@lru_cache(maxsize=20_000)
def _whole_word(name: str) -> re.Pattern[str]:
    """Match a name as a whole word; match a phrase in any case, also in the plural."""
    phrase = " " in name and name.islower()
    return re.compile(
        rf"(?<![\w.\-/]){re.escape(name)}{'s?' if phrase else ''}(?:\(\))?(?![\w\-/]|\.\w)",
        re.IGNORECASE if phrase else 0,
    )
