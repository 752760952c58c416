"""Highlight code on pages, after sanitizing."""

from __future__ import annotations

import html
import re
from collections.abc import MutableMapping, Sequence
from functools import cache, lru_cache
from typing import Any

from markdown_it.renderer import RendererProtocol
from markdown_it.token import Token
from markdown_it.utils import OptionsDict
from pygments import highlight as _pygments
from pygments.formatters import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

HIGHLIGHT_LIMIT = 30_000
"""Longer code blocks, in characters, are shown without colours: lexers can be slow on purpose."""

_LANGUAGE = re.compile(r"[A-Za-z0-9+#._-]{1,40}")
_CODE_OPEN = '<div class="%shighlight"><pre><span></span><code>'
_CODE = re.compile(
    r'(<div class="(?:language-[^"]+ )?highlight"><pre><span></span><code>)(.*?)'
    r"(</code></pre></div>)",
    re.DOTALL,
)


def code_block(
    renderer: RendererProtocol,
    tokens: Sequence[Token],
    index: int,
    options: OptionsDict,
    env: MutableMapping[str, Any],
) -> str:
    token = tokens[index]
    match = _LANGUAGE.match(token.info.strip())
    language = match[0].lower() if match else ""
    if not language and token.content.lstrip().startswith(">>> "):
        language = "pycon"
    env["code"].append((language, token.content))
    name = f"language-{language} " if language else ""
    return f"{_CODE_OPEN % name}{html.escape(token.content)}</code></pre></div>\n"


def colour(page: str, blocks: list[tuple[str, str]]) -> str:
    rest = iter(blocks)

    def coloured(match: re.Match[str]) -> str:
        language, code = next(rest)
        text = _coloured(code, language)
        return match[0] if text is None else f"{match[1]}{text}{match[3]}"

    return _CODE.sub(coloured, page)


# a class and those that inherit from it have the same examples
@lru_cache(maxsize=1_024)
def _coloured(code: str, language: str) -> str | None:
    lexer = _lexer(language) if len(code) <= HIGHLIGHT_LIMIT else None
    return None if lexer is None else _pygments(code, lexer, _formatter())


@cache
def _formatter() -> HtmlFormatter[str]:
    return HtmlFormatter(nowrap=True)


@lru_cache(maxsize=256)
def _lexer(language: str) -> Lexer | None:
    try:
        return get_lexer_by_name(language, stripnl=False) if language else None
    except ClassNotFound:
        return None
