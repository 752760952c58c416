"""What a name names, as far as its letters and the headings above it tell."""

from __future__ import annotations

import re

from kbkit.models import EntityType

_FLAG = re.compile(r"--[A-Za-z][\w-]*|-[A-Za-z]\w{0,30}")
_ERROR_NAME = re.compile(
    r"(?:[A-Za-z_]\w*(?:\.|::))*[A-Z]\w*(?:Error|Exception|Warning|Failure|Fault)"
)
_ERROR_CODE = re.compile(
    r"[A-Z]{1,6}-?\d{3,6}|\w+\.[EWCIF]\d{2,4}|(?:[A-Z]+_)?(?:ERR|ERROR|E)_[A-Z0-9_]+"
)
_ERRNO = re.compile(r"E[A-Z0-9]{3,12}")
_NO_ERROR = re.compile(r"(?:RFC|PEP|ISO|UTF|SHA|MD|CVE|IEEE|ANSI|BUG|LATIN|CP)-?\d+")
_CONSTANT = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
_FILE = re.compile(
    r"(?:~|\.{1,2})?/?(?:[\w.@+-]+/)*[\w.@+-]*\.(?:py|toml|cfg|conf|ini|json|ya?ml|txt|md|rst|html?|js|ts"
    r"|tsx|css|c|h|hpp|cpp|rs|go|so|dll|exe|sh|bat|log|xml|env|lock|db|sql|pem|key|crt|gz|zip|whl)"
    r"|(?:~|/)(?:[\w.@+-]+/)+[\w.@+-]*|\.(?:htaccess|htpasswd|gitignore|env|bashrc|profile)"
)
_DOTTED = re.compile(r"[A-Za-z_$@][\w$]*(?:(?:\.|::|->|#)[A-Za-z_~$][\w$!?]*)*(?:\(\))?")
_DOT_WORD = re.compile(r"\.[a-z0-9][a-z0-9_]+")
_HYPHENATED = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)+")
_DUNDER = re.compile(r"__\w+__")
_VARIABLE = re.compile(r"\$\{?([A-Za-z_]\w+)\}?|%([A-Za-z_]\w+)%")
_ENVIRONMENT = re.compile(r"\benvironment\b|\benv(?:vars?)?\b", re.IGNORECASE)
_SETTINGS = re.compile(
    r"\bsettings?\b|\bconfiguration\b|\bconfig\b|\bdirectives?\b|\boptions\b|\bpragmas?\b",
    re.IGNORECASE,
)
_ERRORS = re.compile(
    r"\berrors?\b|\bexceptions?\b|\bresult codes?\b|\bstatus codes?\b", re.IGNORECASE
)
_CODE = re.compile(r"[a-z0-9][A-Z]|_|::|\w\.\w|\(|^[A-Z]{3,}\w*$|^-")
_KINDS = {
    EntityType.SETTING: "directive setting pragma parameter",
    EntityType.COMMAND: "command program utility",
    EntityType.FLAG: "option flag",
    EntityType.VARIABLE: "environment variable",
    EntityType.ERROR: "error exception",
    EntityType.SCHEMA: "schema",
    EntityType.FILE: "file",
    EntityType.TERM: "statement clause operator keyword header object package",
}


def type_of(name: str, path: tuple[str, ...] = ()) -> EntityType | None:
    """What a word written as code names.

    Args:
        name: The word, as in a code span.
        path: The headings above, which tell constants apart.

    Returns:
        ``None`` where it is no name: an expression, a value, several words.
    """
    if not name or name.isspace() or len(name) > 100:
        return None
    if _FLAG.fullmatch(name):
        return EntityType.FLAG
    if _VARIABLE.fullmatch(name):
        return EntityType.VARIABLE
    if is_error(name):
        return EntityType.ERROR
    if _ERRNO.fullmatch(name) and any(_ERRORS.search(title) for title in path):
        return EntityType.ERROR
    if _FILE.fullmatch(name):
        return EntityType.FILE
    if _CONSTANT.fullmatch(name):
        return _of_constant(path)
    if _DOT_WORD.fullmatch(name):
        return EntityType.SYMBOL
    if _HYPHENATED.fullmatch(name):
        return EntityType.SETTING if path and _SETTINGS.search(path[-1]) else EntityType.SYMBOL
    if not _DOTTED.fullmatch(name):
        return None
    if "_" not in name and name.isalpha() and path and _SETTINGS.search(path[-1]):
        return EntityType.SETTING
    return EntityType.SYMBOL


def looks_like_code(word: str) -> bool:
    """Whether a word is written as identifiers are and words of a language are not."""
    return _CODE.search(word) is not None


def type_of_word(name: str, path: tuple[str, ...] = ()) -> EntityType | None:
    """What a word of prose names that is written as code is, else ``None``; see `type_of`."""
    return type_of(name, path) if looks_like_code(name) else None


def is_error(name: str) -> bool:
    """Whether a name is that of an error, an exception, or the code of one."""
    return bool(
        _ERROR_NAME.fullmatch(name)
        or (_ERROR_CODE.fullmatch(name) and not _NO_ERROR.fullmatch(name))
    )


def _of_constant(path: tuple[str, ...]) -> EntityType:
    for title in reversed(path):
        if _ERRORS.search(title):
            return EntityType.ERROR
        if _ENVIRONMENT.search(title):
            return EntityType.VARIABLE
        if _SETTINGS.search(title):
            return EntityType.SETTING
    return EntityType.SYMBOL


def type_of_kind_word(word: str) -> EntityType:
    """What a heading like ``ModMimeUsePathInfo Directive`` says that it names."""
    low = word.lower()
    return next((kind for kind, words in _KINDS.items() if low in words), EntityType.SYMBOL)
