"""Shards of terms: postings, and rows of the query encoder."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from itertools import chain, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kbkit.embedding.fitted import FittedEncoder
from kbkit.embedding.models import distribution_file
from kbkit.errors import ExportError
from kbkit.export import index_packing as packing
from kbkit.export.facts import asset
from kbkit.extras import missing
from kbkit.models import SubjectKind
from kbkit.recipes import RetrievalSpec
from kbkit.stores.snapshots.snapshot import Lists, Snapshot
from kbkit.text.analysis import Analyzer


class IndexedChunk(NamedTuple):
    """A chunk for search results; `heading` is its path without the document's title."""

    text: str
    heading: str
    anchor: str


@dataclass(frozen=True, slots=True)
class IndexedDocument:
    """A document with adjacent chunks in the index.

    Attributes:
        path: Its page in the export, with ``.md``.
        day: Day of the fetch, from 1970-01-01.
        rating: Average rating, 0 without ratings.
        section: Titles of the sections above it, outermost first.
        label: Title in results, if different.
    """

    path: str
    title: str
    document_type: str
    tags: Sequence[str]
    day: int
    stale: bool
    rating: float
    chunks: int
    is_index: bool = False
    section: str = ""
    label: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class IndexedSummaries:
    """Document summaries: unit vectors in document order, zeros for missing ones."""

    vectors: NDArray[np.float32]
    encoder: FittedEncoder


@dataclass(frozen=True, slots=True, eq=False)
class IndexedVectors:
    """Quantized vectors of chunks or summaries; `numbers` are those with a vector, of `total`."""

    name: str
    kind: str
    prefix: str
    quantized: packing.QuantizedVectors
    numbers: packing.Integers
    total: int
    encoder: FittedEncoder


@dataclass(frozen=True, slots=True, eq=False)
class IndexedSubject:
    """A name of a subject; `rows` are the chunks with any of the subject's names, ascending."""

    kind: SubjectKind
    name: str
    rows: packing.Integers


@dataclass(frozen=True, slots=True, eq=False)
class IndexedAnnotations:
    """Annotations of the chunks.

    Attributes:
        masks: Statement types of each chunk, as bits in the order of `StatementType`.
    """

    masks: packing.Integers
    subjects: Sequence[IndexedSubject]


@dataclass(frozen=True, slots=True)
class IndexContent:
    """Input of an index.

    Attributes:
        rows: The snapshot's row of each chunk of the index, grouped by document.
        prior: Prior of ratings, from -1 to 1; see `kbkit.retrieval.fusion.rating_prior`.
        encoder: The query encoder; ``None`` for search by words only.
        model: Fingerprint of the browsers' model, ``""`` without one.
    """

    name: str
    title: str
    language: str
    snapshot: Snapshot
    rows: packing.Integers
    prior: NDArray[np.float64]
    documents: Sequence[IndexedDocument]
    chunks: Sequence[IndexedChunk]
    encoder: FittedEncoder | None
    summaries: IndexedSummaries | None
    stop_words: Sequence[str]
    retrieval: RetrievalSpec
    model: str = ""
    annotations: IndexedAnnotations | None = None


UNIT = 65_536
"""Scales of term vectors are integers in units of 1 / `UNIT`."""
TERM_BYTES = 8_000
"""Target size of a shard of terms; a common term may exceed it."""
_BATCH_ROWS = 4_000  # rows of the query encoder that are projected at once
_OVERHEAD = 16  # bytes of a term
_POSTING = 3  # bytes of most postings


def quantize_rows(matrix: NDArray[np.float32]) -> tuple[NDArray[np.int8], list[int]]:
    """Quantize rows with a scale each, in units of 1 / `UNIT`; 0 for rows of zeros."""
    largest = np.abs(matrix).max(axis=1, initial=0.0).astype(np.float64)
    scales = np.ceil(largest / packing.LEVELS * UNIT).astype(np.int64)
    steps = np.where(scales > 0, scales, 1)[:, None] / UNIT
    values = np.clip(np.round(matrix / steps), -packing.LEVELS, packing.LEVELS).astype(np.int8)
    return values, scales.tolist()


def utf16_key(term: str) -> bytes:
    return term.encode("utf-16-be", "surrogatepass")


def term_shards(
    content: IndexContent, parts: Sequence[IndexedVectors]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the shards of terms, each with its first term."""
    snapshot = content.snapshot
    postings = Postings(content)
    # excludes terms that occur only in excluded chunks
    used_terms = [(n, term) for n, term in enumerate(snapshot.terms) if postings.counts[n]]
    used_terms.sort(key=lambda entry: utf16_key(entry[1]))
    names = [term for _, term in used_terms]
    numbers = np.array([n for n, _ in used_terms], np.int64)
    tables = {part.prefix: _term_vectors(part.encoder, part.quantized, names) for part in parts}
    sizes = _OVERHEAD + np.char.str_len(np.array(names, str))
    for vectors, scales in tables.values():
        sizes += (scales > 0) * vectors.shape[1] * 2 // 3
    sizes += postings.counts[numbers] * _POSTING
    for start, end in pairwise(split_by_size(sizes, TERM_BYTES)):
        part = slice(start, end)
        values: dict[str, Any] = {
            "t": " ".join(names[part]),
            "n": postings.counts[numbers[part]].tolist(),
            "p": postings.encode(numbers[part]),
        }
        for key, (vectors, scales) in tables.items():
            values[f"{key}s"] = scales[part].tolist()
            values[f"{key}v"] = packing.encode_nibbles(vectors[part][scales[part] > 0])
        yield names[start], values


def split_by_size(sizes: packing.Integers, limit: int) -> list[int]:
    """Return the starts of groups of consecutive items below a total size, and the end."""
    starts, remaining = [], -1
    for number, size in enumerate(sizes.tolist()):
        if size > remaining:
            starts.append(number)
            remaining = limit
        remaining -= size
    return [*starts, len(sizes)]


class Postings:
    """Postings of the terms of a snapshot in the chunks of an index.

    Attributes:
        counts: Number of postings of each term.
    """

    def __init__(self, content: IndexContent) -> None:
        self._snapshot = snapshot = content.snapshot
        self._places = np.full(len(snapshot), -1, np.int64)
        self._places[content.rows] = np.arange(len(content.rows))
        self._titles = _sorted_keys(snapshot.title_terms)
        self._headings = _sorted_keys(snapshot.heading_terms)
        is_indexed = self._places >= 0
        before = np.append(0, np.cumsum(is_indexed[snapshot.rows]))
        self.counts = np.diff(before[snapshot.starts])

    def encode(self, numbers: packing.Integers) -> str:
        """Encode the postings of some terms.

        Two varints per posting: the distance in chunks, and ``4 * (count - 1)``, plus 1 if the term
        is in the heading and 2 if it is in the title.
        """
        snapshot = self._snapshot
        spans = [np.arange(snapshot.starts[n], snapshot.starts[n + 1]) for n in numbers.tolist()]
        span = np.concatenate(spans)
        order = np.repeat(np.arange(len(spans)), [len(each) for each in spans])
        rows = self._places[snapshot.rows[span]]
        indexed = np.lexsort((rows, order))
        indexed = indexed[rows[indexed] >= 0]
        span, order, rows = span[indexed], order[indexed], rows[indexed]
        terms, chunks = numbers[order], snapshot.rows[span]
        marks = 4 * (snapshot.counts[span].astype(np.int64) - 1)
        marks += 2 * _contains(self._titles, snapshot.title_terms, snapshot.owners[chunks], terms)
        marks += _contains(self._headings, snapshot.heading_terms, snapshot.headings[chunks], terms)
        steps = np.diff(rows, prepend=0)
        first = np.flatnonzero(np.diff(order, prepend=-1))
        steps[first] = rows[first]
        return packing.encode_varints(np.stack([steps, marks], axis=1).reshape(-1))


def _sorted_keys(lists: Lists) -> packing.Integers:
    owners = np.repeat(np.arange(len(lists)), np.diff(lists.starts))
    return np.sort(lists.values.astype(np.int64) * (len(lists) + 1) + owners)


def _contains(
    sorted_keys: packing.Integers, lists: Lists, owners: NDArray[np.int32], terms: packing.Integers
) -> NDArray[np.bool_]:
    keys = terms * (len(lists) + 1) + owners
    if not len(sorted_keys):
        return np.zeros(len(keys), np.bool_)
    places = np.minimum(np.searchsorted(sorted_keys, keys), len(sorted_keys) - 1)
    return np.asarray(sorted_keys[places] == keys)


def _term_vectors(
    encoder: FittedEncoder, quantized: packing.QuantizedVectors, terms: Sequence[str]
) -> tuple[NDArray[np.int8], packing.Integers]:
    """Project the query encoder's row of each term, with its scale; 0 for unknown terms."""
    scales = np.zeros(len(terms), np.int64)
    row_of = {term: row for row, term in enumerate(encoder.terms)}
    rows = np.array([row_of.get(term, -1) for term in terms], np.int64)
    values = np.zeros((len(terms), quantized.projection.shape[1]), np.int8)
    matches = np.flatnonzero(rows >= 0)
    for start in range(0, len(matches), _BATCH_ROWS):
        part = matches[start : start + _BATCH_ROWS]
        projected = encoder.vectors[rows[part]] @ quantized.projection
        values[part], scales[part] = quantize_rows(projected)
    return values, scales


# Sphinx has no stemmers for the first four. Snowball 3.1 changed the next three, and its JavaScript
# differs from its C for invented words of Yiddish.
_BY_TABLE = frozenset(
    {"czech", "persian", "polish", "sesotho", "danish", "finnish", "lithuanian", "yiddish"}
)

# an added prefix outside of endings: "internal" and "intern" have one stem
_ENGLISH_SINCE_3_1 = ('["later",-1,-1]', '["inter",-1,-1],["later",-1,-1]')

# JavaScript's stemmers count UTF-16 units, Python's code points, so characters of two units are
# replaced by one unit without other uses.
_STEM = """\
return (word) => {
  const points = [];
  const one = word.replace(/[\\u{10000}-\\u{10ffff}]/gu, (point) =>
    String.fromCharCode(0xdfff + points.push(point)));
  const stem = stemmer.stemWord(one);
  return points.length ? stem.replace(/[\\ue000-\\uf8ff]/g, (unit) =>
    points[unit.charCodeAt(0) - 0xe000]) : stem;
};"""

_UNPACK = """\
const stems = new Map();
for (const line of table.split("\\n")) {
  const [stem, ...words] = line.split(" ");
  for (const word of words) stems.set(word[0] === "=" ? word.slice(1) : stem + word, stem);
}
return (word) => stems.get(word) ?? word;"""


def check_stemmers() -> None:
    """Raise the error for missing stemmers, before an export does any work."""
    if find_spec("sphinx") is None:
        raise missing("site", "sphinx", "The search of an exported site")


def stemmer_source(language: str, texts: Iterable[str]) -> str:
    """Return JavaScript that sets ``globalThis.kbkitStemmers[language]``, a stemmer.

    It runs as a classic script and as a module, and without ``eval``: a Content-Security-Policy of
    ``script-src 'self'`` allows it.
    """
    analyzer = Analyzer(language)  # checks the language
    if analyzer.language in _BY_TABLE:
        body = f"const table = {json.dumps(_pack_table(stem_table(texts, language)))};\n{_UNPACK}"
        return _script(language, body)
    # the license requires its notice in copies
    return asset("snowball-license.txt") + _script(language, _snowball_script(language))


def stem_table(texts: Iterable[str], language: str) -> dict[str, str]:
    import Stemmer

    table: dict[str, str] = {}
    analyzer = Analyzer(language, lambda word: table.setdefault(word, snowball(word)))
    snowball = cache(Stemmer.Stemmer(language, 0).stemWord)
    # a query may contain a stop word that no text contains
    for text in chain(texts, (f"`{word}`" for word in analyzer.stop_words)):
        analyzer.terms(text)
    return {word: stem for word, stem in table.items() if stem and stem != word}


def _pack_table(table: Mapping[str, str]) -> str:
    words: defaultdict[str, list[str]] = defaultdict(list)
    for word, stem in table.items():
        words[stem].append(word.removeprefix(stem) if word.startswith(stem) else f"={word}")
    return "\n".join(" ".join([stem, *sorted(words[stem])]) for stem in sorted(words))


def _script(language: str, body: str) -> str:
    return f"(globalThis.kbkitStemmers ??= {{}}).{language} = (() => {{\n{body}\n}})();\n"


def _snowball_script(language: str) -> str:
    base, stemmer, stem = _file("base"), _file(language), _STEM
    if language == "english" and _ENGLISH_SINCE_3_1[1] not in stemmer:
        if stemmer.count(_ENGLISH_SINCE_3_1[0]) != 1:
            raise ExportError(
                "the English stemmer of the installed sphinx is not supported; "
                "install a supported version: pip install --force-reinstall 'sphinx>=9,<9.2'"
            )
        stemmer = stemmer.replace(*_ENGLISH_SINCE_3_1)
        stem = stem.replace("=> {\n", '=> {\n  if (word === "skis") return "ski";\n', 1)
    name = "".join(part.capitalize() for part in language.split("_"))
    return (
        # modules are strict, so the first file's assignment needs a declaration
        f"let BaseStemmer;\n{base.strip()}\n{stemmer.strip()}\n"
        f"const stemmer = new {name}Stemmer();\n{stem}"
    )


def _file(name: str) -> str:
    path = distribution_file("sphinx", f"minified-js/{name}-stemmer.js")
    if path is None:
        check_stemmers()
        raise ExportError(
            f"{name}-stemmer.js, which search in the browser needs, is missing; "
            "the package sphinx has it: pip install --force-reinstall 'sphinx>=9,<9.2'"
        )
    return path.read_text(encoding="utf-8")
