"""Templates of pages that sources write, in the folder ``templates``."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kbkit.sources.markdown.lines import inline_markdown
from kbkit.text.markdown.writing import code_span, escape, fence

if TYPE_CHECKING:
    from jinja2 import Environment


def fill_template(template: str, **values: Any) -> str:
    """Return a page in Markdown."""
    return _templates().get_template(template).render(values).rstrip("\n") + "\n"


@cache
def _templates() -> Environment:
    from jinja2 import Environment, FileSystemLoader  # slow to import

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).with_name("templates")),
        autoescape=False,  # noqa: S701  # `md` escapes in Markdown
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters |= {"md": escape, "code": code_span, "line": inline_markdown}
    environment.filters |= {"block": _block, "section": _section}
    environment.filters["colon"] = lambda text: text and f": {text}"
    environment.globals["fence"] = fence
    return environment


def _block(text: str) -> str:
    """Return a block and the empty line after it; nothing for an empty block."""
    return f"{bare}\n\n" if (bare := text.strip("\n")).strip() else ""


def _section(text: str, head: str) -> str:
    """Return a head and the text below it; nothing if there is no text."""
    below = _block(text)
    return f"{head}\n\n{below}" if head and below else below
