"""Admonitions as kbkit keeps them: a quotation whose title, in bold, tells what kind it is."""

from __future__ import annotations

from kbkit.markdown.writing import quote

KINDS = frozenset(
    str.split("""
        note warning tip hint caution important danger error attention seealso info success
        question failure bug example quote abstract summary tldr todo check done fail missing
        cite help faq security admonition annotate secondary aside callout
        """)
)
"""What dialects of Markdown call admonitions."""

_SHOWN = {
    **{kind: kind for kind in (
        "note", "abstract", "info", "tip", "success", "question", "warning", "failure", "danger",
        "bug", "example", "quote",
    )},
    "caution": "warning", "attention": "warning", "deprecated": "warning", "error": "danger",
    "hint": "tip", "important": "info", "see": "info", "new": "info", "changed": "info",
    "todo": "info", "faq": "question", "help": "question", "summary": "abstract",
}  # fmt: skip
_TOLD = frozenset(
    str.split("""
        warning tip hint caution important danger error attention success question failure bug
        example
        """)
)
"""Kinds that a page draws in a way of their own, which a title alone would not tell."""
_NAMES = {"seealso": "See also", "tldr": "TL;DR", "faq": "FAQ", "todo": "To do"}


def admonition(title: str, text: str) -> str:
    """An admonition as Markdown, ``""`` for one that says nothing.

    Args:
        title: Its Markdown, or ``""``.
        text: What it says, Markdown too.
    """
    return quote("\n\n".join(filter(None, [f"**{title}**" if title else "", text])))


def title_of(kind: str, own: str | None) -> str:
    """What names an admonition; a title of its own follows what kind it is, which pages draw.

    Args:
        kind: As it is written.
        own: Its own title; ``""`` for none at all in dialects that say so, ``None`` for its kind's.
    """
    first = (own or "").split(" ", maxsplit=1)[0].lower().rstrip(":!.,")
    if own and _first_word(kind) in _TOLD and first not in KINDS:
        return f"{_named(kind)}: {own}"
    return _named(kind) if own is None else own


def shown_as(title: str) -> str:
    """How the theme shows an admonition that has a title, by its first word."""
    return _SHOWN.get(title.split(maxsplit=1)[0].lower().strip(":"), "note")


def _named(kind: str) -> str:
    """What an admonition of a kind is called that has no title."""
    word = _first_word(kind)
    return _NAMES.get(word, word.replace("-", " ").capitalize())


def _first_word(kind: str) -> str:
    return kind.split(" ", maxsplit=1)[0].lower()
