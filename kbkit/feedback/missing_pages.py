"""Pages that golden questions name and that a knowledge base does not have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from kbkit.feedback.evaluation_report import MissingPage
from kbkit.feedback.evaluation_set import EvaluationSet, Searchable, is_page
from kbkit.stores.catalog import reading

_NOTED = 10
"""Pages that notes name one by one."""
_SUGGESTED = 50
"""Pages that the nearest one is looked for of: each is compared with all that there are."""


def missing_pages(kb: Searchable, queries: EvaluationSet) -> tuple[MissingPage, ...]:
    """The pages of golden questions that a knowledge base does not have.

    Args:
        kb: The knowledge base.
        queries: What it is asked; of judgements, which name chunks, there are none.
    """
    if queries.unit != "page":
        return ()
    with kb.retriever.stores.database.read() as transaction:
        uris = reading.searched_uris(transaction, kb.retriever.kb_id)
    by_end: dict[str, list[str]] = {}  # so that each page is compared with a few only
    for uri in uris:
        for end in _ends(uri):
            by_end.setdefault(end, []).append(uri)
    found: list[MissingPage] = []
    for query in queries:
        for page in query.gains:
            likely = [uri for end in _ends(page) for uri in by_end.get(end, ())]
            if not any(is_page(uri, page) for uri in likely):
                near = _nearest(page, uris) if len(found) < _SUGGESTED else ""
                found.append(MissingPage(query.text, page, near))
    return tuple(found)


def missing_notes(missing: Sequence[MissingPage]) -> tuple[str, ...]:
    """What a person is told of them."""
    notes = [str(page) for page in missing[:_NOTED]]
    if missing:
        notes[0] = f"{notes[0]} Such questions count as not answered."
    if len(missing) > _NOTED:
        notes.append(f"{len(missing) - _NOTED:,} more pages that questions name are not there")
    return tuple(notes)


def _ends(uri: str) -> Iterable[str]:
    """The last parts of a URI, with and without its fragment: what it may be named by."""
    for text in {uri, uri.partition("#")[0]}:
        yield text.rstrip("/").replace(":", "/").rpartition("/")[2]


def _nearest(page: str, uris: Sequence[str]) -> str:
    """The end of a URI that is written most like a page, of as many parts."""
    wanted = page.lstrip("/")
    parts = wanted.count("/") + 1
    tails = {"/".join(uri.split("/")[-parts:]): uri for uri in uris}
    near = get_close_matches(wanted, tails, 1, 0.6)
    if near:
        return near[0]
    # the same name elsewhere
    name = wanted.rpartition("/")[2]
    return next((uri for uri in uris if uri.rpartition("/")[2] == name), "")
