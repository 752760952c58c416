"""Lists of knowledge bases and collections for agents, and their usage."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kbkit.mcp.replies.reply import Budget, Quotes, Reply, listing
from kbkit.models import Document, IngestReport, KnowledgeBaseInfo, Problem
from kbkit.models.values import pluralize
from kbkit.retrieval.delimiting import LINE_TOKENS, cut, one_line


def knowledge_bases_reply(infos: Iterable[KnowledgeBaseInfo], *, budget: Budget) -> Reply:
    quotes = Quotes()
    return listing(
        (row_of(info, quotes) for info in infos),
        quotes,
        name="knowledge_bases",
        nothing="No knowledge base yet.",
        budget=budget,
    )


def row_of(info: KnowledgeBaseInfo, quotes: Quotes) -> tuple[str, dict[str, Any]]:
    about = cut(one_line(info.description), LINE_TOKENS)
    updated = f"{info.updated_at:%Y-%m-%d}"
    documents = pluralize(info.documents, "document")
    line = f"- {info.name}{f': {about}' if about else ''} ({documents}, updated {updated})"
    return line, {
        "name": info.name,
        "description": about and quotes.value(about),
        "documents": info.documents,
        "chunks": info.chunks,
        "updated_at": updated,
    }


_MAX_FOLDERS = 30


def usage_text(
    rules: str,
    tools: Mapping[str, str],
    knowledge_bases: Iterable[KnowledgeBaseInfo],
    folders: Sequence[str],
    budget: Budget,
) -> str:
    quotes = Quotes()
    uses = "\n".join(f"- `{name}` {use}." for name, use in tools.items())
    head = f"{rules}\n\n{uses}\n\n{quotes.note}"
    roots = [cut(one_line(folder), LINE_TOKENS) for folder in folders]
    named = ", ".join(f"{folder}/" for folder in roots[:_MAX_FOLDERS])
    left = len(roots) - _MAX_FOLDERS
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
    listed = "\n".join(["Knowledge bases:", *lines]) if lines else "No knowledge base yet."
    return f"{head}\n\n<{quotes.mark}>\n{listed}\n\n{files}\n</{quotes.mark}>"


_ID_TOKENS = 120
_MAX_SKIPPED = 5


def collection_reply(
    info: KnowledgeBaseInfo, documents: Iterable[Document], *, budget: Budget
) -> Reply:
    quotes = Quotes()
    about = cut(one_line(info.description), LINE_TOKENS)
    figures = f"{pluralize(info.documents, 'document')}, {pluralize(info.chunks, 'chunk')}"
    updated = f"{info.updated_at:%Y-%m-%d}"
    return listing(
        (_document(each, quotes) for each in documents),
        quotes,
        name="documents",
        above=f"{info.name}: {figures}, updated {updated}.\n",
        about=about,
        nothing=f"{info.name} holds no document yet.",
        budget=budget,
        more={
            "collection_name": info.name,
            "description": quotes.value(about),
            "documents_in_all": info.documents,
            "chunks": info.chunks,
            "updated_at": updated,
        },
    )


def added_reply(name: str, report: IngestReport, skipped: list[Problem]) -> Reply:
    left = [*skipped, *report.failed, *report.skipped]
    left_out = [
        cut(one_line(f"{each.uri}: {each.reason}"), LINE_TOKENS) for each in left[:_MAX_SKIPPED]
    ]
    if len(left) > _MAX_SKIPPED:
        left_out.append(f"and {len(left) - _MAX_SKIPPED:,} more")
    added = pluralize(report.new, "new document")
    text = f"{name}: {added}, {report.changed:,} changed, {report.same:,} as they were"
    text += f"; {pluralize(report.chunks_added, 'chunk')} to search now."
    if left_out:
        text += "\nLeft out:\n" + "\n".join(f"- {line}" for line in left_out)
    return Reply(
        text,
        {
            "collection_name": name,
            "new": report.new,
            "changed": report.changed,
            "same": report.same,
            "chunks": report.chunks_added,
            "left_out": left_out,
        },
    )


def _document(info: Document, quotes: Quotes) -> tuple[str, dict[str, Any]]:
    known_as = one_line(info.uri)
    if cut(known_as, _ID_TOKENS) != known_as:
        known_as = info.id
    title = cut(one_line(info.title), LINE_TOKENS)
    return f"- {known_as}: {title}", {"id": known_as, "title": quotes.value(title)}
