"""Recognize problems and resolutions: error texts, headings and cue phrases."""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache, partial

from ahocorasick_rs import AhoCorasick, MatchKind

from kbkit.annotation import Passage
from kbkit.annotation.gazetteer import Mention, NameGazetteer
from kbkit.annotation.statements import Reading, Sentence, read
from kbkit.annotation.terms import WORDS, fold_text, is_error, is_term
from kbkit.models import Annotation, StatementType
from kbkit.text.markdown import without_text_anchor
from kbkit.text.markdown.structure import inline_text, plain_text

_MAX = 5
_MAX_LENGTH = 200

_ERROR_TEXT = re.compile(
    r"^[ \t>]*(?:[\w.]+(?:Error|Exception|Warning): \S[^\n]{3,160}"
    r"|(?:fatal(?: error)?|error|panic|ERROR|FATAL|Error)(?: ?\[?[A-Z]?\d*\]?)?: \S[^\n]{3,160})",
    re.MULTILINE,
)
_QUOTE = re.compile(r"\n[ \t]*>[ \t>]*")
_TROUBLE_TITLE = re.compile(WORDS["trouble_titles"], re.IGNORECASE | re.VERBOSE)
_TROUBLE = re.compile(WORDS["trouble"], re.VERBOSE)
_MENDING = re.compile(WORDS["mending"], re.VERBOSE)
_STRONG = re.compile(WORDS["surely_mending"])


def problems_and_resolutions(
    text: str, path: Sequence[str], reading: Reading, entities: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    problems: dict[str, None] = {}
    resolutions: dict[str, None] = {}
    leaf = path[-1] if path else ""
    troubled = bool(_TROUBLE_TITLE.search(leaf))
    if troubled:
        problems[leaf] = None
    for match in _ERROR_TEXT.finditer(text):
        problems[_cut(match[0].strip(" >\t"), _MAX_LENGTH)] = None
    low = fold_text(text) if reading.sentences else ""
    for sentence in reading.sentences:
        bad = _TROUBLE.search(low, sentence.start, sentence.end)
        good = _MENDING.search(low, sentence.start, sentence.end)
        if good and (
            troubled or problems or bad or _STRONG.search(low, sentence.start, sentence.end)
        ):
            resolutions[_sentence_text(text, sentence)] = None
        elif bad:
            problems[_sentence_text(text, sentence)] = None
    for name in entities:
        if is_error(name):
            problems[name] = None
    return _limit(problems), _limit(resolutions)


def _limit(labels: dict[str, None]) -> tuple[str, ...]:
    return tuple(label for label in labels if label)[:_MAX]


def _sentence_text(text: str, sentence: Sentence) -> str:
    sentence_text = text[sentence.start : sentence.end].replace("\0", "")
    line = " ".join(inline_text(_QUOTE.sub("\n", sentence_text).strip("> ")).split())
    return _cut(line, _MAX_LENGTH)


def _cut(text: str, length: int) -> str:
    if len(text) <= length:
        return text
    return text[:length].rpartition(" ")[0].rstrip(" ,;:") + " …"


_MAX_CONTEXTS = 8
_MAX_DOMAINS = 5
_MAX_LABEL = 80

_VERSION = re.compile(
    r"(?:\b(?P<product>[A-Z][A-Za-z+#]*(?:\s[A-Z][A-Za-z+#]*)?)\s(?:[Vv]ersions?\s)?"
    r"|\b(?:versions?|since|release|prior to|as of)\s(?:version\s)?)"
    r"v?(?P<number>\d+\.\d+(?:\.\d+)*)"
)
_NO_PRODUCT = frozenset(WORDS["no_product"].split())
_PLATFORMS = {
    name.strip().lower(): shown
    for shown, names in WORDS["platforms"].items()
    for name in names.split(",")
}
_PLATFORM = AhoCorasick(list(_PLATFORMS), matchkind=MatchKind.LeftmostLongest)
_INSIDE = frozenset("./_-`")
_PLACES = frozenset(("Section", "Figure", "Table", "Chapter", "Appendix", "RFC", "PEP", "HTTP"))
_PREFIX = re.compile(r"\A(?:\d+(?:\.\d+)*\.?|[A-Z]\.|Chapter \d+:?)\s+")


def contexts_of(text: str, path: Sequence[str]) -> tuple[str, ...]:
    whole_text = "\n".join((*path, text))
    contexts = dict.fromkeys((*_versions(whole_text), *_platforms_in(whole_text)))
    labels = list(contexts)[: _MAX_CONTEXTS - 1]
    if len(path) > 1:
        leaf = _PREFIX.sub("", path[-1])
        if 0 < len(leaf) <= _MAX_LABEL:
            labels.append(leaf)
    return tuple(dict.fromkeys(labels))


def _versions(text: str) -> Iterator[str]:
    for match in _VERSION.finditer(text):
        product = (match["product"] or "").split()
        if not product or product[0] not in _PLACES:
            is_product = product and product[0] not in _NO_PRODUCT
            yield f"{' '.join(product) if is_product else 'version'} {match['number']}"


def _platforms_in(text: str) -> Iterator[str]:
    low = fold_text(text)
    for number, start, end in _PLATFORM.find_matches_as_indexes(low):
        before, after = low[start - 1 : start], low[end : end + 1]
        # whole words outside addresses and paths
        if not (
            before.isalnum() or after.isalnum() or before in _INSIDE or (after in "/_`" and after)
        ):
            yield list(_PLATFORMS.values())[number]


def domains_of(passage: Passage) -> tuple[str, ...]:
    domains = dict.fromkeys(tag for tag in passage.document.tags if len(tag) <= _MAX_LABEL)
    for title in (passage.document.title, *passage.chunk.heading_path[:-1])[:4]:
        domains.update(dict.fromkeys(_terms_of(title)))
    return tuple(domains)[:_MAX_DOMAINS]


@lru_cache(maxsize=10_000)
def _terms_of(title: str) -> tuple[str, ...]:
    parts = re.split(r"\s+[—–|-]\s+|:\s+", _PREFIX.sub("", title))
    return tuple(part for part in parts if is_term(part))


REVISION = 6
"""Version of the rules; raise it to annotate again."""

_MAX_STATEMENT_LENGTH = 600
_MAX_SENTENCES = 3
_MAX_ENTITIES = 40
_MARKS = re.compile(r"^[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])\s+)?", re.MULTILINE)


class RulesAnnotator:
    """Annotates chunks by linguistic cues and block types."""

    fingerprint = f"rules:{REVISION}"

    def annotate(
        self, passages: Sequence[Passage], gazetteer: NameGazetteer
    ) -> list[tuple[Annotation, ...]]:
        """Annotate passages.

        The first annotation covers the whole chunk, with its main statement type and names. Others
        are sentences of another type. Code, tables and other languages than English have one
        annotation without a type.
        """
        return [self._annotate(passage, gazetteer) for passage in passages]

    def _annotate(self, passage: Passage, gazetteer: NameGazetteer) -> tuple[Annotation, ...]:
        chunk = passage.chunk
        text = chunk.text
        reading = read(text, chunk.heading_path)
        mentions = gazetteer.find(text)
        entities = _distinct(mentions)
        problems, resolutions = problems_and_resolutions(
            text, chunk.heading_path, reading, entities
        )
        of_chunk = partial(
            Annotation,
            domains=domains_of(passage),
            contexts=contexts_of(text, chunk.heading_path),
            annotator=self.fingerprint,
        )
        types = reading.types
        main_type = types[0] if types else None
        annotations = [
            of_chunk(
                text=text,
                normalized_text=_whole(text, reading, main_type),
                frame=main_type,
                entities=entities,
                problems=problems,
                resolutions=resolutions,
                confidence=reading.confidence,
                end=len(text),
            )
        ]
        for type_ in types[1:]:
            key = max(reading.sentences, key=lambda sentence: sentence.weights[type_])
            inner = [m for m in mentions if key.start <= m.start and m.end <= key.end]
            annotations.append(
                of_chunk(
                    text=text[key.start : key.end],
                    normalized_text=_statement_text(text, [key]),
                    frame=type_,
                    entities=_distinct(inner),
                    confidence=round(reading.confidence * 0.7, 2),
                    start=key.start,
                    end=key.end,
                )
            )
        return tuple(annotations)


def _distinct(mentions: Sequence[Mention]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(mention.name for mention in mentions))[:_MAX_ENTITIES]


def _whole(text: str, reading: Reading, type_: StatementType | None) -> str:
    if not reading.sentences:
        return _cut(plain_text(text), _MAX_STATEMENT_LENGTH)
    if type_ is None or len(reading.sentences) <= _MAX_SENTENCES:
        return _statement_text(text, reading.sentences[:_MAX_SENTENCES])
    ranked = sorted(reading.sentences, key=lambda s: -s.weights[type_])
    chosen = {id(s) for s in (*ranked[: _MAX_SENTENCES - 1], reading.sentences[0])}
    return _statement_text(text, [s for s in reading.sentences if id(s) in chosen])


def _statement_text(text: str, sentences: Sequence[Sentence]) -> str:
    cleaned = (without_text_anchor(text[each.start : each.end])[0] for each in sentences)
    plain = (" ".join(_MARKS.sub("", each.replace("\0", "")).split()) for each in cleaned)
    parts = (" ".join(inline_text(each).split()) for each in plain)
    return _cut(" ".join(filter(None, parts)), _MAX_STATEMENT_LENGTH)
