"""Resources for an agent: the list of a knowledge base's documents, and parts of texts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kbkit.models import Document, KnowledgeBaseInfo
from kbkit.models.plain import pluralize
from kbkit.replies.listings import listing
from kbkit.replies.quotes import Quotes
from kbkit.replies.reply import Budget, Reply, with_cursor
from kbkit.retrieval.citations import LINE_TOKENS, cut
from kbkit.retrieval.quoting import one_line


def index_reply(
    info: KnowledgeBaseInfo,
    documents: Iterable[Document],
    address: Callable[[Document], str],
    *,
    start: int,
    budget: Budget,
) -> Reply:
    """What a knowledge base holds, as ``llms.txt`` tells it: a title, what it is about, links.

    Args:
        info: Its figures.
        documents: What it holds.
        address: Where a document can be read.
        start: How many documents were told before.
        budget: What the reply may take.
    """
    quotes = Quotes()
    about = cut(one_line(info.description), 2 * LINE_TOKENS)
    head = f"# {info.name}\n\n{pluralize(info.documents, 'document')}. {quotes.note}\n"
    head += f"<{quotes.mark}>" + f"\n> {about}" * bool(about)

    def row(document: Document) -> tuple[str, dict[str, Any]]:
        title = cut(one_line(document.title), LINE_TOKENS).translate(_BRACKETS)
        said = cut(one_line(document.description), LINE_TOKENS)
        return f"- [{title}]({address(document)})" + f": {said}" * bool(said), {}

    return listing(
        map(row, documents), name="documents", head=head, foot=f"</{quotes.mark}>",
        nothing=f"# {info.name}\n\nIt holds no document yet.", start=start, budget=budget,
    )  # fmt: skip


def read_on(reply: Reply, address: str) -> str:
    """The text of a reply that is read at an address: the rest is at one of its own.

    Args:
        reply: It.
        address: Of the whole.
    """
    cursor = str(reply.values["next_cursor"])
    if not cursor:
        return reply.text
    text = reply.text.removesuffix(with_cursor("", cursor))
    return f"{text}\n\nThere is more: read {next_address(reply, address)}"


def next_address(reply: Reply, address: str) -> str:
    """Where what follows a part can be read; ``""`` behind the last."""
    cursor = str(reply.values["next_cursor"])
    return f"{address}?cursor={cursor}" if cursor else ""


_BRACKETS = str.maketrans("[]", "()")
