"""Corpora of any size: the documentation that installed packages carry, copied with other words.

The docstrings of the standard library and of installed packages, a page for each few thousand
characters of a module. Each copy has a quarter of its words renamed, so that the vocabulary grows
with the corpus as that of real text does (Heaps' law), and no two copies say quite the same.
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
"""Characters of a page, about."""
_MIN = 80
"""Characters of a docstring that says something."""
_AT_ONCE = 20_000
"""Chunks that are stored by one run, about."""
_FIRST = 2_000
"""Of the first run, which tells how many a page has."""
_WORD = re.compile(r"[A-Za-z]{3,}")


class Page(NamedTuple):
    """A page of documentation."""

    path: str
    title: str
    text: str


@cache
def pages() -> tuple[Page, ...]:
    """The docstrings of all modules that are installed, in pages; to read them takes minutes."""
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
    """In order of path."""
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
    """A text with a quarter of its words renamed, the same words in all texts of a copy."""
    return _WORD.sub(lambda match: _other(match[0], copy), text) if copy else text


@lru_cache(200_000)
def _other(word: str, copy: int) -> str:
    if zlib.crc32(f"{copy}:{word.lower()}".encode()) % 4:
        return word
    return word[::-1].lower() + "".join(chr(ord("a") + int(digit)) for digit in str(copy)) + "x"


def questions(most: int, seed: int = 11) -> list[str]:
    """What people might ask: first sentences of docstrings, no two of them alike."""
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
    """Add documents to a knowledge base until it has about so many chunks.

    Args:
        kb: One that has nothing but what this gave it.
        folder: For the texts while they are read.
        size: Chunks.
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
    """Add so many documents that no copy has; gives the source that they come from."""
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
