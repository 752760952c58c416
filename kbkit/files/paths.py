"""Valid paths of files: portable, and inside the folder. Pure functions.

Names that are special on some system (`CON`, `a:b`), names with a leading dot (`.git`), and names
with misleading characters are invalid, so that the folder can be checked out on any machine.
"""

import os
import re
import unicodedata
from functools import lru_cache
from pathlib import PurePath

from kbkit.errors import InvalidPathError, PathOutsideError

MAX_NAME = 255  # bytes; the limit of file systems
MAX_PATH = 3_000  # bytes; operating systems allow 4,096 with the folder of the workspace
MAX_DEPTH = 50  # nested folders

# valid names, except for reserved ones
_PLAIN = re.compile(r"\w(?:[\w \-.,+@()]*[\w\-,+@()])?", re.ASCII)
_FORBIDDEN = re.compile(r'[<>:"|?*\x00-\x1f\x7f-\x9f\\]')
# characters that look like a slash or end a line
_SEPARATORS = frozenset("\u2044\u2215\u29f5\u29f8\u29f9\ufe68\uff0f\uff3c\u2028\u2029")
_RESERVED = re.compile(
    r"(?:con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])\s*(?:\..*)?|git~[0-9]+",
    re.IGNORECASE | re.DOTALL,
)
_DRIVE = re.compile(r"[A-Za-z]:")
# zero-width characters within words of some languages and within emoji
_JOINERS = frozenset("\u200c\u200d")


def parts_of(path: str | PurePath) -> tuple[str, ...]:
    """Split a path into names in NFC; none for the root."""
    text = path.as_posix() if isinstance(path, PurePath) else path
    if not isinstance(text, str):
        raise InvalidPathError(f"{path!r}: give a path as text, such as 'notes/today.md'")
    if text.startswith(("/", "\\", "~/", "~\\")) or text == "~" or _DRIVE.match(text):
        raise PathOutsideError(
            f"{_short_path(text)}: give a path from the root of the files, such as 'notes/today.md'"
        )
    parts = [part for part in text.split("/") if part not in ("", ".")]
    if any(part.strip(". ") == "" and part.count(".") > 1 for part in re.split(r"[/\\]", text)):
        raise PathOutsideError(f"{_short_path(text)}: a path may not go up ('..')")
    normal = tuple(_normal(part, text) for part in parts)
    if len(normal) > MAX_DEPTH:
        raise InvalidPathError(f"{_short_path(text)}: has more than {MAX_DEPTH} folders")
    if len("/".join(normal).encode()) > MAX_PATH:
        raise InvalidPathError(f"{_short_path(text)}: is longer than {MAX_PATH:,} bytes")
    return normal


def _normal(name: str, path: str) -> str:
    if reason := fault(name):
        raise InvalidPathError(f"{_short_path(path)}: {reason}")
    return name if name.isascii() else unicodedata.normalize("NFC", name)


@lru_cache(maxsize=50_000)
def fault(name: str) -> str:
    """Return why a name is invalid on some system; ``""`` if it is valid."""
    if _PLAIN.fullmatch(name) and len(name) <= MAX_NAME and not _RESERVED.fullmatch(name):
        return ""
    if any(unicodedata.category(each) == "Cs" for each in name):
        return "a name is not valid Unicode"
    if match := _FORBIDDEN.search(name):
        return f"a name may not have the character {match[0]!r}"
    if separator := next((each for each in name if each in _SEPARATORS), None):
        return f"a name may not have {separator!r}, which looks like a slash or ends a line"
    bare = "".join(each for each in name if each not in _JOINERS)
    if hidden := next((each for each in bare if unicodedata.category(each) == "Cf"), None):
        return f"a name may not have the invisible character {hidden!r}"
    if bare.startswith("."):
        return f"names that begin with a dot ({bare}) belong to tools; choose another name"
    if name != name.strip() or name.endswith(".") or bare != bare.strip():
        return f"a name may not begin with a space, or end with a space or a dot ({name!r})"
    if _RESERVED.fullmatch(bare) or _RESERVED.fullmatch(unicodedata.normalize("NFKC", bare)):
        return f"{name} is reserved by some systems; choose another name"
    if len(unicodedata.normalize("NFC", name).encode()) > MAX_NAME:
        return f"a name may have {MAX_NAME} bytes at most ({name[:20]}...)"
    return "" if bare else "a name may not be empty"


def collision_key(name: str) -> str:
    """Return a key that is equal for names that some file system does not distinguish.

    Ignores case, Unicode composition and invisible joiners.
    """
    if name.isascii():
        return name.lower()
    bare = "".join(each for each in name if each not in _JOINERS)
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", bare).casefold())


def same_name(name: str, other: str) -> bool:
    return name == other or (not other.isascii() and unicodedata.normalize("NFC", other) == name)


def join_parts(parts: tuple[str, ...]) -> str:
    return "/".join(parts)


def _short_path(path: str) -> str:
    """Shorten a path for a message, and escape control characters."""
    text = path if len(path) <= 100 else f"{path[:97]}..."
    return text if text.isprintable() and text else ascii(os.fsdecode(text))
