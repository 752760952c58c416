"""The documents of a knowledge base as its pages show them."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import quote

from kbkit.markdown.links import WIKI_LINK
from kbkit.markdown.structure import slug
from kbkit.markdown.wiki_links import resolve_wiki_links
from kbkit.models import Document
from kbkit.stores.catalog import files, reading
from kbkit.stores.catalog.built_in import ENTRIES, FILES
from kbkit.stores.catalog.database import Transaction


class StoredDocuments:
    """The documents of a knowledge base as one transaction sees them, however often they are read.

    They are read as they are asked for, so that a large knowledge base is never held whole. In the
    files of a workspace, links by name are links to the files that they mean; entries have their
    category, and what keeps them from being used, among their tags.
    """

    def __init__(self, transaction: Transaction, kb_id: str) -> None:
        self._transaction = transaction
        self._kb_id = kb_id

    def __iter__(self) -> Iterator[Document]:
        for document in reading.iter_documents(self._transaction, self._kb_id, gone=False):
            if self._kb_id == FILES:
                yield self._linked(document)
            elif self._kb_id == ENTRIES:
                yield _labelled(document)
            else:
                yield document

    def _linked(self, document: Document) -> Document:
        if "[[" not in document.content:
            return document
        path = document.uri
        leads = {link.target: link.leads_to for link in files.links(self._transaction, path)}

        def address(name: str, heading: str) -> str | None:
            target = leads.get(name) or leads.get(f"/{name}")
            if not target:
                return None
            href = quote(posixpath.relpath(target, posixpath.dirname(path) or "."))
            return f"{href}#{quote(slug(heading))}" if heading else href

        about = WIKI_LINK.sub(lambda match: match[3] or match[1], document.description)
        content = resolve_wiki_links(document.content, address)
        return replace(document, content=content, description=about)


def _labelled(document: Document) -> Document:
    """An entry whose category, and status where it is not to be used, are tags."""
    said = [document.metadata.get("category"), document.metadata.get("status")]
    more = [each for each in said if isinstance(each, str) and each not in ("", "active")]
    return replace(document, tags=tuple(dict.fromkeys((*document.tags, *more))))
