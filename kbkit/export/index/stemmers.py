"""Snowball's stemmers in JavaScript, for search in the browser.

The package ``sphinx`` carries them, minified, and is never imported. Its versions 9.0 and 9.1 have
those of Snowball 3.0.1, PyStemmer 3.1 has Snowball 3.1. Compared on 190,000 to 490,000 words for
each language (of documentation, of the translations of Debian's programs, of spelling
dictionaries, and made of their beginnings and ends), 27 languages agree on every word that the
analyzer stems, and English does with what `_ENGLISH_SINCE_3_1` and ``skis`` add. Eight do not:
`_BY_TABLE`. Their sites carry the stems of the words that they hold; a word of a query that no
page has stays as it is, and would find nothing anyway.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.util import find_spec
from itertools import chain

from kbkit.embedding.files import distribution_file
from kbkit.errors import ExportError
from kbkit.extras import missing
from kbkit.text import Analyzer

# Sphinx has no stemmers of the first four. Snowball 3.1 changed the next three, and on made-up
# words of Yiddish its JavaScript differs from its C.
_BY_TABLE = frozenset(
    {"czech", "persian", "polish", "sesotho", "danish", "finnish", "lithuanian", "yiddish"}
)

# one more beginning that is no part of the ending: "internal" and "intern" are one
_ENGLISH_SINCE_3_1 = ('["later",-1,-1]', '["inter",-1,-1],["later",-1,-1]')

# what its license asks for wherever the stemmers go
_LICENSE = """\
/*! Stemmers of the Snowball project, https://snowballstem.org/, minified by the Sphinx project.
Copyright (c) 2001, Dr Martin Porter
Copyright (c) 2004,2005, Richard Boulton
Copyright (c) 2013, Yoshiki Shibukawa
Copyright (c) 2006-2025, Olly Betts
All rights reserved.

Redistribution and use in source and binary forms, with or without modification, are permitted
provided that the following conditions are met:
1. Redistributions of source code must retain the above copyright notice, this list of conditions
   and the following disclaimer.
2. Redistributions in binary form must reproduce the above copyright notice, this list of
   conditions and the following disclaimer in the documentation and/or other materials provided
   with the distribution.
3. Neither the name of the Snowball project nor the names of its contributors may be used to
   endorse or promote products derived from this software without specific prior written permission.

THIS SOFTWARE IS PROVIDED BY THE COPYRIGHT HOLDERS AND CONTRIBUTORS "AS IS" AND ANY EXPRESS OR
IMPLIED WARRANTIES, INCLUDING, BUT NOT LIMITED TO, THE IMPLIED WARRANTIES OF MERCHANTABILITY AND
FITNESS FOR A PARTICULAR PURPOSE ARE DISCLAIMED. IN NO EVENT SHALL THE COPYRIGHT OWNER OR
CONTRIBUTORS BE LIABLE FOR ANY DIRECT, INDIRECT, INCIDENTAL, SPECIAL, EXEMPLARY, OR CONSEQUENTIAL
DAMAGES (INCLUDING, BUT NOT LIMITED TO, PROCUREMENT OF SUBSTITUTE GOODS OR SERVICES; LOSS OF USE,
DATA, OR PROFITS; OR BUSINESS INTERRUPTION) HOWEVER CAUSED AND ON ANY THEORY OF LIABILITY, WHETHER
IN CONTRACT, STRICT LIABILITY, OR TORT (INCLUDING NEGLIGENCE OR OTHERWISE) ARISING IN ANY WAY OUT
OF THE USE OF THIS SOFTWARE, EVEN IF ADVISED OF THE POSSIBILITY OF SUCH DAMAGE.
*/
"""

# The stemmers count UTF-16 units where those of Python count code points, so what has two units is
# written with one of private use, which no word has.
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
    """Fail before the work of an export is done."""
    if find_spec("sphinx") is None:
        raise missing("site", "sphinx", "The search of an exported site")


def stemmer_source(language: str, texts: Iterable[str]) -> str:
    """JavaScript that sets ``globalThis.kbkitStemmers[language]`` to a function that stems a word.

    It runs the same as a classic script (``<script src>``, ``importScripts``) and as a module that
    is imported for what it does, and needs no ``eval``, so a Content-Security-Policy of
    ``script-src 'self'`` allows it. The function is what the ``stem`` of `analyzer.js` takes.
    """
    analyzer = Analyzer(language)  # checks the language
    if analyzer.language in _BY_TABLE:
        body = f"const table = {json.dumps(_pack_table(stem_table(texts, language)))};\n{_UNPACK}"
        return _script(language, body)
    return _LICENSE + _script(language, _snowball_script(language))


def stem_table(texts: Iterable[str], language: str) -> dict[str, str]:
    import Stemmer

    table: dict[str, str] = {}
    analyzer = Analyzer(language, lambda word: table.setdefault(word, snowball(word)))
    snowball = cache(Stemmer.Stemmer(language, 0).stemWord)
    # a query may name a stop word that no text names
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
    base, own, stem = _file("base"), _file(language), _STEM
    if language == "english" and _ENGLISH_SINCE_3_1[1] not in own:
        own = _replace_once(own, *_ENGLISH_SINCE_3_1)
        stem = stem.replace("=> {\n", '=> {\n  if (word === "skis") return "ski";\n', 1)
    name = "".join(part.capitalize() for part in language.split("_"))
    return (
        # modules are strict, where the first file's assignment needs a declaration
        f"let BaseStemmer;\n{base.strip()}\n{own.strip()}\n"
        f"const stemmer = new {name}Stemmer();\n{stem}"
    )


def _replace_once(text: str, old: str, new: str) -> str:
    if text.count(old) != 1:
        raise ExportError(
            "the English stemmer of the installed sphinx is not one that kbkit knows; "
            "install one that it does: pip install --force-reinstall 'sphinx>=9,<9.2'"
        )
    return text.replace(old, new)


def _file(name: str) -> str:
    path = distribution_file("sphinx", f"minified-js/{name}-stemmer.js")
    if path is None:
        check_stemmers()
        raise ExportError(
            f"{name}-stemmer.js, which search in the browser needs, is not there; "
            "the package sphinx carries it: pip install --force-reinstall 'sphinx>=9,<9.2'"
        )
    return path.read_text(encoding="utf-8")
