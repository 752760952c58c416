"""How an agent uses what there is, as a text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kbkit.models import KnowledgeBaseInfo
from kbkit.replies.knowledge_bases import row_of
from kbkit.replies.quotes import Quotes
from kbkit.replies.reply import Budget
from kbkit.retrieval.citations import LINE_TOKENS, cut
from kbkit.retrieval.quoting import one_line

_MOST_FOLDERS = 30


def usage_text(
    rules: str,
    tools: Mapping[str, str],
    knowledge_bases: Iterable[KnowledgeBaseInfo],
    folders: Sequence[str],
    budget: Budget,
) -> str:
    """How an agent uses a server.

    Args:
        rules: What always holds.
        tools: What each tool is for.
        knowledge_bases: Those there are.
        folders: Those at the root of the files.
        budget: What the text may take; knowledge bases that do not fit are counted.
    """
    quotes = Quotes()
    said = "\n".join(f"- `{name}` {use}." for name, use in tools.items())
    head = f"{rules}\n\n{said}\n\n{quotes.note}"
    roots = [cut(one_line(folder), LINE_TOKENS) for folder in folders]
    named = ", ".join(f"{folder}/" for folder in roots[:_MOST_FOLDERS])
    left = len(roots) - _MOST_FOLDERS
    files = f"Root folders: {named or 'none yet'}" + f" and {left} more" * (left > 0)
    budget.take(f"{head}\n\n<{quotes.mark}>\n{files}\nKnowledge bases:\nand 0000000 more\n</>")
    lines: list[str] = []
    others = 0
    for info in knowledge_bases:
        line, _ = row_of(info, quotes)
        if not others and budget.takes(line):
            lines.append(line)
        else:
            others += 1
    lines += [f"and {others:,} more"] if others else []
    listed = "\n".join(["Knowledge bases:", *lines]) if lines else "There is no knowledge base yet."
    return f"{head}\n\n<{quotes.mark}>\n{listed}\n\n{files}\n</{quotes.mark}>"
