"""What goes wrong and what mends it: error texts, headings about troubles, cue phrases."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from ahocorasick_rs import AhoCorasick

from kbkit.annotation.folding import folded
from kbkit.annotation.name_types import is_error
from kbkit.annotation.statements import Reading, Sentence
from kbkit.markdown.plain_text import inline_text

_MOST = 5
_LONGEST = 200

_ERROR_TEXT = re.compile(
    r"^[ \t>]*(?:[\w.]+(?:Error|Exception|Warning): \S[^\n]{3,160}"
    r"|(?:fatal(?: error)?|error|panic|ERROR|FATAL|Error)(?: ?\[?[A-Z]?\d*\]?)?: \S[^\n]{3,160})",
    re.MULTILINE,
)
_QUOTE = re.compile(r"\n[ \t]*>[ \t>]*")
_TROUBLE_TITLE = re.compile(
    r"""
      troubleshoot | vulnerabilit | CVE- | \bcrash
    | \b(?:problems?|gotchas?|pitfalls?|fail(?:s|ed|ures?)?|cannot|can[’']?t|doesn[’']t)\b
    | \b(?:known\ issues?|common\ (?:issues|errors|mistakes)|not\ work\w*)\b
    | \b(?:don[’']t|error)\b.*\? | \bwhy\ (?:does|do|is|are|am|can)\b
    """,
    re.IGNORECASE | re.VERBOSE,
)
_TROUBLE = re.compile(
    r"""
    \b(?:
        fail(?:s|ed|ure)? | crash(?:es|ed)? | dead-?locks? | corrupt(?:ed|ion|s)? | bugs? | hangs?
      | problem(?:s|atic)? | breaks? | unable\ to | race\ condition\w* | memory\ leak\w*
      | does(?:n[’']t|\ not)\ work | will\ not\ work | denial[- ]of[- ]service | injection
      | data\ loss | go(?:es)?\ wrong | security\ (?:risk|hole|issue) | unexpected(?:ly)?
      | errors?(?:\ messages?)?\ (?:is|are|occurs?|will|like|saying)
    )\b
    | \b(?:vulnerab|segfault|overflow|misbehav)
    """,
    re.VERBOSE,
)
_MENDING = re.compile(
    r"""
    \b(?:
        work-?arounds?
      | to\ (?:fix|solve|resolve|mend|correct|avoid|prevent|remedy|(?:work|get)\ around|overcome)
      | the\ (?:solution|fix|remedy|answer)\ (?:is|to)
      | can\ be\ (?:fixed|solved|avoided|resolved|prevented|worked\ around)
      | (?:has|have|was|were|is|are)\ (?:been\ )?fixed | make\ sure
      | try\ (?:to|using|the|setting|adding) | instead,?\ use | use\ [^.]{2,60}\ instead
      | avoid(?:ed)?\ (?:this|the\ problem|it)\ by
    )\b
    | \bmitigat
    """,
    re.VERBOSE,
)
_STRONG = re.compile(
    r"\bwork-?around|\bto (?:fix|solve|resolve|work around)\b|\bsolution\b|\bfixed\b|\bremedy\b"
)


_HINTS = str.split("""
    fail crash deadlock dead-lock corrupt race memory vulnerab work unable problem bug hang break
    segfault overflow denial injection wrong loss security error misbehav unexpected fix solve
    resolve mend correct avoid prevent remedy overcome solution answer sure try instead mitigat
    """)


@cache
def _hints() -> AhoCorasick:
    """What a sentence about troubles has in it, if nothing more."""
    return AhoCorasick(_HINTS)


def problems_and_resolutions(
    text: str, path: Sequence[str], reading: Reading, entities: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What a chunk says goes wrong, and what it says mends that.

    Args:
        text: The chunk.
        path: The headings above it.
        reading: Its sentences.
        entities: The names that stand in it; errors among them are problems.
    """
    problems: dict[str, None] = {}
    resolutions: dict[str, None] = {}
    leaf = path[-1] if path else ""
    troubled = bool(_TROUBLE_TITLE.search(leaf))
    if troubled:
        problems[leaf] = None
    if "rror" in text or "RROR" in text or "xception" in text or "atal" in text or "anic" in text:
        for match in _ERROR_TEXT.finditer(text):
            problems[_short(match[0].strip(" >\t"))] = None
    low = folded(text) if reading.sentences else ""
    hinted = reading.sentences if _hints().find_matches_as_indexes(low) else ()
    for sentence in hinted:
        bad = _TROUBLE.search(low, sentence.start, sentence.end)
        good = _MENDING.search(low, sentence.start, sentence.end)
        if good and (
            troubled or problems or bad or _STRONG.search(low, sentence.start, sentence.end)
        ):
            resolutions[_said(text, sentence)] = None
        elif bad:
            problems[_said(text, sentence)] = None
    for name in entities:
        if is_error(name):
            problems[name] = None
    return _bounded(problems), _bounded(resolutions)


def _bounded(found: dict[str, None]) -> tuple[str, ...]:
    return tuple(one for one in found if one)[:_MOST]


def _said(text: str, sentence: Sentence) -> str:
    bare = text[sentence.start : sentence.end].replace("\0", "")
    return _short(" ".join(inline_text(_QUOTE.sub("\n", bare).strip("> ")).split()))


def _short(text: str) -> str:
    if len(text) <= _LONGEST:
        return text
    return text[:_LONGEST].rpartition(" ")[0].rstrip(" ,;:") + " …"
