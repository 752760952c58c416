r"""The analyzer: text to index terms.

Documents, queries and reranking use `Analyzer.terms`; browsers use ``assets/analyzer.js``. These
rules specify both. *Letter* means ``[\p{L}\p{Nl}\p{No}]``.

1. **Normalise.** Delete invisible characters (soft hyphen, zero width space, joiner and
   non-joiner, word joiner, invisible operators, byte order mark), then apply NFKC.
2. **Tokens.** A *word* is one of ``[\p{L}\p{N}_]`` and any number of ``[\p{L}\p{N}\p{M}_]``. A
   token is one word, or several words with *joints* between them: ``.``, ``-`` or an apostrophe
   (``'`` or ``’``), and ``:``, ``::``, ``->``, ``/`` or ``@`` if a letter or ``_`` follows. It may
   start with a *sign*, one of ``- -- @ # $ .``, if a letter or ``_`` follows and none of
   ``[\p{L}\p{N}_.\-)\]]`` precedes. It may end with ``++`` and up to two digits, if no word
   follows, or, after a token of one letter, with ``#``. Adjacent backticks belong to it. An
   *operator* (`_OPERATOR`: ``??``, ``=>``) between spaces, backticks or parentheses is a token and
   its own term.
3. **Fold**: lower case, then ``ß`` to ``ss``, ``ς`` to ``σ``, ``i`` with U+0307 to ``i``, and
   ``’`` to ``'``.
4. **Scripts without spaces**, and Hangul (`_SPACELESS`): each run gives all pairs of neighbouring
   characters, or its only character. Text between runs is analyzed separately.
5. **Contractions.** ``n't 's 't 're 've 'll 'd 'm`` are cut from the end of a token of up to 64
   characters. If no term remains, a document's token is read without its apostrophe.
6. **Segments** are the parts of a token between joints other than ``-`` and apostrophes, if they
   have letters or digits. *Pieces* are the parts of a segment between ``_``, ``-``, apostrophes
   and changes of case (`_PIECE`: ``appendEvent``, ``HTTPServer``). A *joined* segment is folded,
   without ``_``, apostrophes and each ``-`` next to a letter: ``append_event``, ``appendEvent``,
   ``append-event`` and ``appendevent`` are equal. The *whole* is all joined segments with ``.``
   between them, or nothing if there are several of one letter each: ``I/O`` is ``io``.
7. **Terms**, each once per token:
   a. The sign with the whole, and with the first joined segment. The whole, if there are several
      segments: stemmed if joined by nothing, and also without a ``v`` before a number and a dot.
      The whole with its ``++`` or ``#``, and with ``++`` without digits.
   b. For each segment (from step 4 on if there are several, or a sign, ``++`` or ``#``), except a
      single letter before ``++`` or ``#``: the joined segment between its leading and trailing
      underscores, if any; with several pieces, the joined segment, stemmed, and each part between
      ``_``, ``-`` and apostrophes that has several pieces; each piece, folded and stemmed. Letters
      followed by three or more digits also give both parts (``rfc9110``).
   c. In documents, a word that is not ASCII also stemmed without its accents, and with its umlauts
      spelled out (``groesse``), unless that is a stop word.
8. **Stop words** are pieces without a term, unless they are *named*: the only piece of their
   segment and two or more capitals (``WHERE``, ``GET``), or a whole token next to a backtick.
9. **Stemming** is Snowball's, unless nothing would remain. A term has at most 64 code points; a
   word is cut to them before stemming. Terms are *bare*: without accents on Latin and Greek
   letters, and with plain letters for ``ø đ ł ð þ æ œ ı``.

Terms consist of letters, digits, marks, ``_ . - + # @ $`` and signs of operators. Queries differ as
`Analyzer.query_terms` describes.
"""

import re
import unicodedata
from collections.abc import Callable
from functools import cache
from itertools import chain, groupby

from kbkit.errors import ImpossibleError
from kbkit.text import SPACELESS, stop_words

REVISION = 2
"""Version of these rules; terms of different versions do not match."""

_MAX_TERM_LENGTH = 64
_MAX_REMEMBERED = 300_000

_UNSEEN = re.compile("[\u00ad\u200b-\u200d\u2060-\u2064\ufeff]")
_LETTER = r"[^\W\d_]"


def _marks() -> str:
    r"""Return ``\p{M}``, which `re` lacks, as content of a character class."""
    points = (*range(0x300, 0x20000), *range(0xE0100, 0xE01F0))
    marks = [point for point in points if unicodedata.category(chr(point))[0] == "M"]
    runs = []
    for _, group in groupby(enumerate(marks), lambda pair: pair[1] - pair[0]):
        run = [chr(point) for _, point in group]
        runs.append(f"{run[0]}-{run[-1]}")
    return "".join(runs)


_OPERATOR = (
    r"\?\?=?|\?[.:]|&&|\|\||[!=]==?|<=>|[<>]=|<<=?|>>=?|[-=]>|<-|[-+*/%:|&^]="
    r"|\*\*|\|>|=~|!~|!!|\+\+"
)


@cache
def _token(is_ascii: bool) -> re.Pattern[str]:
    marks = "\u0300" if is_ascii else _marks()  # ASCII text does not wait for the list of all
    joint = r"(?:[.\-'’]|(?:::?|->|[/@])(?=[^\W\d]))"
    return re.compile(
        rf"(?<![^\s`(])(?:{_OPERATOR})(?![^\s`).,;])|"
        r"(?:[`@#$.\-](?:"
        r"(?<=`)(?:(?:--?|[@#$.])(?=[^\W\d]))?"  # a backtick, perhaps with a sign
        r"|(?<![\w.\-)\]].)(?:(?<=-)-)?(?=[^\W\d])"  # a sign
        r"))?\w++"
        # this lookahead lets most words skip the rest
        r"(?:(?=[.\-'’:/@+#`\u0300-\U000e0fff])"
        rf"(?:{joint}\w+|(?![\0-\u02ff])[{marks}]+\w*)*"
        rf"(?:\+\+(?:\d\d?)?(?!\w)|(?<=(?<!\w){_LETTER})#(?!\w))?`?)?"
    )


def _tokens(text: str) -> list[str]:
    return _token(text.isascii()).findall(text)


_ALONE = re.compile(_OPERATOR)
_END = re.compile(r"\+\+\d*$|#$")
_JOINTS = ".-'’:/@>"
_JOINT = re.compile(r"::?|->|[./@]")
_GLUE = re.compile(rf"[_'’]|(?<={_LETTER})-|-(?={_LETTER})")
_PIECE = re.compile(
    r"[-_'’]+"
    r"|(?<=[a-z])(?=[A-Z])"  # appendEvent
    r"|(?<=[A-Z0-9])(?=[A-Z][a-z])"  # HTTPServer, utf8Decode
)
_PARTS = re.compile(r"[-_'’]+")
_NUMBERED = re.compile("([a-z]{2,})([0-9]{3,})")
_ACCENTS = re.compile("(?<=[a-z\u0370-\u03ff])[\u0300-\u036f]+")
_PLAIN = str.maketrans(
    {**dict(zip("øđłðı", "odldi", strict=True)), "þ": "th", "æ": "ae", "œ": "oe"}
)
_SPELLED = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "å": "aa", "ø": "oe"})
_VERSION = re.compile(r"v\d+\.")
_CONTRACTION = re.compile(r"(.+?)(?:n['’]t|['’](?:s|t|re|ve|ll|d|m))", re.IGNORECASE)
_SPACELESS = re.compile(f"([{SPACELESS}]+)")

# English questions mention, rather than use, a function word after an article or before a kind of
# statement
_MENTIONED = re.compile(
    r"(?<!\S)(?:"
    r"(?:an?|the)\s+(?!(?:above|below|few|further|more|most|only|other|own|same|so|such|then|too"
    r"|under|used?|very)\b)(\w+)(?=[,;.!?)]*(?:\s|$))"
    r"|(for|while)(?=\s+loops?\b)"
    r"|(if|with|while)(?=\s+statements?\b)"
    r"|(from|having|where)(?=\s+clauses?\b)"
    r"|(and|between|in|is|not|or)(?=\s+operators?\b))",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"(?<!\w)[\"'“„‘«](\w+)[\"'”“’»](?!\w)")
_WORD = re.compile(r"\w+")


class _Memory(dict[str, tuple[str, ...]]):
    def __init__(self, terms_of: Callable[[str], tuple[str, ...]]) -> None:
        super().__init__()
        self._terms_of = terms_of

    def __missing__(self, token: str) -> tuple[str, ...]:
        terms = self._terms_of(token)
        if len(self) < _MAX_REMEMBERED and len(token) <= _MAX_TERM_LENGTH:
            self[token] = terms
        return terms


class Analyzer:
    """Turns text into terms for one language.

    Args:
        language: Snowball name.
        stem: Stemmer; by default Snowball's.
        one_form: Return one form of each word, for queries.
    """

    def __init__(
        self,
        language: str = "english",
        stem: Callable[[str], str] | None = None,
        *,
        one_form: bool = False,
    ) -> None:
        import Stemmer

        if language not in Stemmer.algorithms():
            languages = ", ".join(sorted(Stemmer.algorithms()))
            raise ImpossibleError(f"language {language!r} is not known; choose one of {languages}")
        self.language = language
        self.stop_words = frozenset(fold(_normal(word)) for word in stop_words(language))
        self._stem = stem or Stemmer.Stemmer(language, 0).stemWord
        self._memory = _Memory(self._terms_of)
        self._one_form = one_form
        self._of_queries = self if one_form else Analyzer(language, self._stem, one_form=True)

    def terms(self, text: str) -> list[str]:
        """Return the terms of a text in order, with repetitions, without stop words."""
        tokens = _tokens(_normal(text))
        return list(chain.from_iterable(map(self._memory.__getitem__, tokens)))

    def query_terms(self, text: str) -> list[str]:
        """Return the distinct terms of a query, in order.

        Unlike `terms`, it gives one form per word (documents also have forms without accents or
        apostrophes). Words in quotes are also named and, in English, stop words after an
        article (``the with statement``) or before ``loop``, ``statement``, ``clause`` or
        ``operator``. A query in capitals is lowered. If no term remains, words have their other
        forms, else all are named.
        """
        text = _normal(text)
        if text.isupper():
            text = text.lower()
        marked = _QUOTED.sub(r"`\1`", text)
        if self.language in ("english", "porter"):
            marked = _MENTIONED.sub(lambda found: re.sub(r"\w+$", r"`\g<0>`", found[0]), marked)
        terms_of = self._of_queries.terms
        terms = terms_of(marked) or self.terms(text) or terms_of(_WORD.sub(r"`\g<0>`", text))
        return list(dict.fromkeys(terms))

    def _terms_of(self, token: str) -> tuple[str, ...]:
        if _ALONE.fullmatch(token):
            return (token,)
        if "`" in token:
            stripped = token.strip("`")
            folded = fold(stripped)
            return self._word(folded, True) if folded in self.stop_words else self._memory[stripped]
        folded = fold(token)
        if token.isascii() and token.isalnum() and token[1:] in (folded[1:], token[1:].upper()):
            # a plain word, by far the commonest case
            return self._word(folded, len(token) > 1 and token.isupper())
        if not token.isascii() and _SPACELESS.search(token):
            return self._spaceless(token)
        apostrophe = "'" in folded and len(token) <= _MAX_TERM_LENGTH
        if apostrophe and (contraction := _CONTRACTION.fullmatch(token)):
            terms = self._memory[contraction[1]]
            return terms if terms or self._one_form else self._word(_fold_segment(folded))
        body = token.lstrip("-@#$.")
        sign = token[: len(token) - len(body)]
        end = "".join(_END.findall(body)) if "+" in body or "#" in body else ""
        segments = [s for s in _JOINT.split(body[: len(body) - len(end)]) if s.strip("_-'’")]
        if not segments:
            return ()
        if len(segments) == 1 and not sign and not end:
            return self._segment(segments[0])
        wholes = self._wholes(sign, list(map(_fold_segment, segments)), end)
        if not (end and len(segments[0]) == 1):  # C++ is not C
            wholes += chain.from_iterable(map(self._memory.__getitem__, segments))
        return tuple(dict.fromkeys(wholes))

    def _wholes(self, sign: str, joined_segments: list[str], end: str) -> list[str]:
        single = all(len(segment) == 1 and segment.isalpha() for segment in joined_segments)
        letters = single and len(joined_segments) > 1
        whole = ("" if letters else ".").join(joined_segments)
        terms = [sign + whole, sign + joined_segments[0]] if sign else []
        if letters:
            terms.append(self._stem_word(whole))
        elif len(joined_segments) > 1:
            terms.append(whole)
            if _VERSION.match(whole):
                terms.append(whole[1:])
        if end:
            terms += [whole + end, whole + end.rstrip("0123456789")]
        return [bare(term)[:_MAX_TERM_LENGTH] for term in terms]

    def _segment(self, segment: str) -> tuple[str, ...]:
        pieces = [fold(piece) for piece in _PIECE.split(segment) if piece]
        is_named = len(pieces) == 1 and len(pieces[0]) > 1 and segment.isupper()
        terms = []
        joined = _fold_segment(segment)
        if (inner := segment.strip("_")) != segment:  # __init__
            terms.append(bare(segment.replace(inner, joined, 1))[:_MAX_TERM_LENGTH])
        if len(pieces) > 1:
            terms.append(self._stem_word(joined))
            parts = filter(None, _PARTS.split(segment))
            terms += (self._stem_word(_fold_segment(part)) for part in parts if _PIECE.search(part))
        for piece in pieces:
            terms += self._word(piece, is_named)
        return tuple(dict.fromkeys(terms))

    def _spaceless(self, token: str) -> tuple[str, ...]:
        terms: list[str] = []
        for n, run in enumerate(_SPACELESS.split(token)):
            if n % 2:
                terms += (run[i : i + 2] for i in range(max(1, len(run) - 1)))
            else:
                terms += chain.from_iterable(map(self._terms_of, _tokens(run.strip(_JOINTS))))
        return tuple(terms)

    def _word(self, folded: str, is_named: bool = False) -> tuple[str, ...]:
        if not folded or (folded in self.stop_words and not is_named):
            return ()
        if folded.isascii() and not (numbered := _NUMBERED.fullmatch(folded)):
            return (self._stem_word(folded),)
        forms = [folded]
        if folded.isascii():
            forms += numbered.groups() if numbered else ()
        elif not self._one_form:
            variants = bare(folded), bare(folded.translate(_SPELLED))
            forms += (variant for variant in variants if variant not in self.stop_words)
        return tuple(dict.fromkeys(map(self._stem_word, forms)))

    def _stem_word(self, folded: str) -> str:
        word = folded[:_MAX_TERM_LENGTH]
        return bare(self._stem(word) or word)[:_MAX_TERM_LENGTH]


def _fold_segment(segment: str) -> str:
    return fold(segment if segment.isalnum() else _GLUE.sub("", segment))


def fold(text: str) -> str:
    """Fold case; JavaScript has no Unicode case folding, so four replacements do what matters."""
    text = text.lower()
    if not text.isascii():
        text = text.replace("ß", "ss").replace("ς", "σ").replace("i\u0307", "i").replace("’", "'")
    return text


def bare(folded: str) -> str:
    """Remove accents from Latin and Greek letters of folded text."""
    if folded.isascii():
        return folded
    text = _ACCENTS.sub("", unicodedata.normalize("NFD", folded))
    return unicodedata.normalize("NFC", text.translate(_PLAIN))


def _normal(text: str) -> str:
    return text if text.isascii() else unicodedata.normalize("NFKC", _UNSEEN.sub("", text))


@cache
def analyzer(language: str = "english") -> Analyzer:
    return Analyzer(language)
