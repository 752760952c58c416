"""Links between notes, and tags. Pure functions.

``[[Name]]`` links to a file by name, title or alias, in any folder; ``[[folder/Name]]`` by the end
of its path; ``[text](other.md)`` by its path relative to the note.
"""

import posixpath
import re
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import unquote

from kbkit.files.paths import collision_key
from kbkit.stores.catalog.indexed_files import Link
from kbkit.text.markdown import blocks, change_blocks
from kbkit.text.markdown.structure import CODE_SPAN, DESTINATION, WIKI_LINK

SUFFIXES = (".md", ".markdown", ".txt")  # links may omit these

_BRACKETS = re.compile(r"\[\[[^\[\]\n]{0,2000}\]\]")
_TAG = re.compile(r"(?<![^\s(\[{,;:>\"'])#([\w][\w/-]{0,99})(?![\w#])")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//")
_MAX_FILE_LENGTH = 2_000_000  # characters searched for links and tags


def prose(content: str) -> str:
    text = content[:_MAX_FILE_LENGTH]
    verbatim = (block for block in blocks(text) if block.is_verbatim)
    prose_text = change_blocks(text, verbatim, lambda *_: "")
    return CODE_SPAN.sub(" ", prose_text) if "`" in text else prose_text


def tags_of(text: str) -> list[str]:
    """Return the tags in a text without code (``#tea``, ``#drinks/tea``), each once."""
    plain = _BRACKETS.sub(" ", text) if "#" in text else ""  # in links, # precedes a heading
    tags = (match[1].rstrip("/-") for match in _TAG.finditer(plain))
    return list(dict.fromkeys(tag for tag in tags if any(each.isalpha() for each in tag)))


def links_of(text: str, path: str) -> list[Link]:
    """Return the unresolved links of a note to files, each once."""
    targets = [match[1].strip() for match in WIKI_LINK.finditer(text)] if "[[" in text else []
    targets += _relative(text, path) if "](" in text else ()
    return [
        Link(path, target, key, "")
        for target in dict.fromkeys(filter(None, targets))
        if (key := key_of(target))
    ]


def _relative(text: str, path: str) -> Iterator[str]:
    for match in DESTINATION.finditer(text):
        href = match[1] or match[2] or ""
        address = unquote(href.partition("#")[0].partition("?")[0])
        if not address or _SCHEME.match(address) or address.startswith(("/", "\\")):
            continue
        full = posixpath.normpath(posixpath.join(posixpath.dirname(path), address))
        if not full.startswith("..") and full != "." and posixpath.splitext(full)[1] in SUFFIXES:
            yield f"/{full}"


def key_of(target: str) -> str:
    return collision_key(_bare(target.rstrip("/").rpartition("/")[2].strip()))


def _bare(name: str) -> str:
    stem, suffix = posixpath.splitext(name)
    return stem if suffix.lower() in SUFFIXES else name


def names_of(path: str, title: str = "", aliases: Any = None) -> set[str]:
    names = [aliases] if isinstance(aliases, str) else aliases
    texts = [each for each in names if isinstance(each, str)] if isinstance(names, list) else []
    keys = {key_of(path), *(collision_key(each.strip()) for each in (title, *texts))}
    return {key for key in keys if key}


def meant(link: Link, candidates: Sequence[str]) -> str:
    """Resolve a link among files of that name; ``""`` if there is none.

    Names win over titles, then files next to the note, then the file nearest to the root.
    """
    target = link.target
    if target.startswith("/"):
        path_key = collision_key(target[1:])
        return next((path for path in candidates if collision_key(path) == path_key), "")
    folder = posixpath.dirname(link.path)
    if target.startswith(("./", "../")):
        full_path = posixpath.normpath(posixpath.join(folder, target))
        stem_key = collision_key(_bare(full_path))
        return next((path for path in candidates if collision_key(_bare(path)) == stem_key), "")
    parents = tuple(collision_key(part.strip()) for part in target.split("/")[:-1])
    matches = [path for path in candidates if _ends(path, parents) and path != link.path]

    def rank(path: str) -> tuple[bool, bool, int, str]:
        return (key_of(path) != link.key, posixpath.dirname(path) != folder, path.count("/"), path)

    return min(matches, key=rank, default="")


def _ends(path: str, parents: tuple[str, ...]) -> bool:
    folders = tuple(collision_key(part) for part in path.split("/")[:-1])
    return not parents or folders[-len(parents) :] == parents
