"""Corpora of any size: docstrings of installed packages, copied with other words.

The docstrings of a module are divided into pages of a few thousand characters. Each copy has a
quarter of its words renamed, so that the vocabulary grows with the corpus as in real text (Heaps'
law) and no two copies are equal.
"""

from __future__ import annotations

import ast
import inspect
import json
import random
import re
import sysconfig
import zlib
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from itertools import count
from pathlib import Path
from typing import NamedTuple

from _corpora import KEPT

import kbkit

PAGE = 6_000
"""About the characters of a page."""
_MIN = 80
"""Shortest docstring, in characters."""
_AT_ONCE = 20_000
"""About the chunks that one run stores."""
_FIRST = 2_000
"""Pages of the first run, which shows how many chunks a page has."""
_WORD = re.compile(r"[A-Za-z]{3,}")


class Page(NamedTuple):
    path: str
    title: str
    text: str


@cache
def pages() -> tuple[Page, ...]:
    """Divide the docstrings of all installed modules into pages; takes minutes."""
    kept = KEPT / "docstrings.jsonl"
    if not kept.is_file():
        kept.parent.mkdir(parents=True, exist_ok=True)
        part = kept.with_suffix(".part")
        with part.open("w", encoding="utf-8") as out:
            out.writelines(json.dumps(page) + "\n" for page in _read_pages())
        part.replace(kept)
    with kept.open(encoding="utf-8") as lines:
        return tuple(Page(*json.loads(line)) for line in lines)


def _read_pages() -> Iterator[Page]:
    folders = {Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib")}
    files = {
        file.relative_to(folder).as_posix(): file
        for folder in sorted(folders)
        for file in folder.rglob("*.py")
        if "site-packages" not in file.relative_to(folder).parts and "test" not in str(file)
    }
    for path, file in sorted(files.items()):
        try:
            tree = ast.parse(file.read_text(encoding="utf-8"))
        except (SyntaxError, UnicodeDecodeError, ValueError, RecursionError):
            continue
        held: list[str] = []
        number = 0
        module = path.removesuffix(".py").replace("/", ".")
        for part in [*_sections(tree, module), None]:
            if part is not None:
                held.append(part)
            if held and (part is None or sum(map(len, held)) > PAGE):
                text = "\n\n".join(held)
                title = f"{module} ({number})" if number else module
                yield Page(f"{path.removesuffix('.py')}/{number}.md", title, text)
                held, number = [], number + 1


def _sections(tree: ast.AST, module: str) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            said = ast.get_docstring(node, clean=False)
            if said is not None and len(said) >= _MIN:
                name = getattr(node, "name", module)
                yield f"## {name}\n\n{inspect.cleandoc(said)}"


def renamed(text: str, copy: int) -> str:
    """Rename a quarter of a text's words, the same words in all texts of a copy."""
    return _WORD.sub(lambda match: _other(match[0], copy), text) if copy else text


@lru_cache(200_000)
def _other(word: str, copy: int) -> str:
    if zlib.crc32(f"{copy}:{word.lower()}".encode()) % 4:
        return word
    return word[::-1].lower() + "".join(chr(ord("a") + int(digit)) for digit in str(copy)) + "x"


def questions(most: int, seed: int = 11) -> list[str]:
    """Return first sentences of docstrings as questions, all different."""
    found = {
        said
        for page in pages()
        for section in page.text.split("\n## ")
        if 4
        <= len((said := section.partition("\n\n")[2].split(". ")[0].split("\n")[0]).split())
        <= 14
    }
    return random.Random(seed).sample(sorted(found), most)


def grow(kb: kbkit.KnowledgeBase, folder: Path, size: int) -> None:
    """Add documents to a knowledge base until it has about ``size`` chunks.

    Args:
        kb: A knowledge base that only this function has filled.
        folder: Place of temporary files.
        size: Number of chunks.
    """
    source = list(pages())
    random.Random(7).shuffle(source)
    done = len(kb.documents)
    held = kb.info().chunks
    stream = ((copy, page) for copy in count() for page in source)
    for _ in range(done):
        next(stream)
    while held < size:
        # a name of its own: what an older file of the same name had would be gone
        file = folder / f"{kb.name}-{done}.jsonl"
        wanted = min(_AT_ONCE if done else _FIRST, size - held)
        per_page = held / done if done else 9.0
        number = max(1, round(wanted / per_page))
        _write(file, (next(stream) for _ in range(number)))
        kb.ingest(kbkit.JsonlSource(path=str(file)))
        file.unlink()
        done, held = done + number, kb.info().chunks


def add(kb: kbkit.KnowledgeBase, folder: Path, number: int) -> str:
    """Add ``count`` new documents and return their source."""
    file = folder / "added.jsonl"
    _write(file, ((999, page) for page in pages()[:number]))
    kb.ingest(kbkit.JsonlSource(path=str(file)))
    return str(file)


def _write(file: Path, copies: Iterable[tuple[int, Page]]) -> None:
    with file.open("w", encoding="utf-8") as out:
        for copy, page in copies:
            values = {
                "uri": f"copy{copy}:{page.path}",
                "title": renamed(page.title, copy),
                "text": renamed(page.text, copy),
            }
            out.write(json.dumps(values) + "\n")
