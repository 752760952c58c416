"""Document summaries, so that search can rank whole documents.

A summary consists of title, description and outline of headings. It is made after the ingest.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kbkit.embedding import Embedder
from kbkit.errors import EmbedderError
from kbkit.ingest.cutting import DESCRIPTION_LENGTH, describe_missing, digest
from kbkit.ingest.embedding import embed
from kbkit.models import Document, Progress
from kbkit.runtime.progress import OnProgress
from kbkit.stores.catalog import knowledge_bases, ratings, summaries
from kbkit.stores.catalog.database import Database, Transaction, batches
from kbkit.stores.catalog.summaries import ExpansionRow, NewSummary
from kbkit.text.markdown import Block, Kind
from kbkit.text.markdown.structure import Outline, outline, plain_text

REVISION = 2
"""Version of `summary_text`; raise it to make summaries again."""
LENGTH = 600
"""Maximum characters of a summary."""

_TITLE_LENGTH = 200
_READ = 4_000  # characters of a list or table
_HEADINGS = 400
_NUMBER = re.compile(r"(?:[A-Z]\.)?(?:\d{1,4}\.)+\d*\s+|[A-Z]\.\s+(?=[A-Z])")


def summary_text(
    title: str, content: str, description: str, *, structure: Outline | None = None
) -> str:
    parsed = structure or outline(content)
    name = _without_number(title)[:_TITLE_LENGTH]
    headings = sorted(parsed.headings[:_HEADINGS], key=lambda heading: heading.level)
    names = (_without_number(heading.path[-1]) for heading in headings if heading.path)
    parts = dict.fromkeys(each for each in names if each.casefold() != name.casefold())
    if not description and not parts:
        description = _first_text(content, parsed.blocks)[:DESCRIPTION_LENGTH]
    sentence = ". ".join(filter(None, (name.rstrip("."), description)))
    return " ".join(filter(None, (sentence, "; ".join(parts))))[:LENGTH].rstrip()


def expanded_text(title: str, summary: str, questions: Sequence[str]) -> str:
    """Return the summary of a document with text of a language model."""
    text = ". ".join(filter(None, (_without_number(title)[:_TITLE_LENGTH].rstrip("."), summary)))
    for question in questions:
        if len(text) + 1 + len(question) <= LENGTH:
            text = f"{text} {question}"
    return text[:LENGTH].rstrip()


def text_hash(title: str, content: str) -> str:
    return digest(f"{title}\0{content}")


def _first_text(content: str, blocks: Sequence[Block]) -> str:
    shown = (block for block in blocks if block.kind in (Kind.TEXT, Kind.TABLE))
    texts = (
        plain_text(content[block.start : min(block.end, block.start + _READ)]) for block in shown
    )
    return next(filter(None, texts), "")


def _without_number(title: str) -> str:
    return _NUMBER.sub("", " ".join(title.split()), count=1) if _NUMBER.match(title) else title


_SAMPLE = 24  # summaries that a model embeds in one to three seconds, for an estimate
# share of documents that may lack a vector of the model in use; they count as the mean of others
_FEW = 0.1
_BATCH = 64


@dataclass(frozen=True, slots=True)
class SummariesLeft:
    """Summaries that a model has not embedded yet."""

    summaries: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class SummaryMaker:
    """Makes the summaries of one knowledge base."""

    database: Database
    kb_id: str
    model: Embedder
    static: Callable[[], Embedder]

    def make(
        self,
        *,
        seconds: float = math.inf,
        renew: bool = True,
        on_progress: OnProgress | None = None,
        stop: Callable[[], bool] = lambda: False,
    ) -> SummariesLeft:
        """Make missing summaries and embed them.

        The model stops after a few of them if all would take longer than `seconds`.
        """
        written = self._write(REVISION if renew else 0)
        changed = written > 0
        missing = self._missing(self.model)
        if not self._is_static and len(missing) > _SAMPLE:
            self._settle(changed=changed)
            changed = False
            if not seconds and written <= _SAMPLE:  # single documents, while many others wait
                missing = {}
        start = time.perf_counter()
        made = self._embed(self.model, missing, on_progress, stop, seconds)
        elapsed = time.perf_counter() - start
        left = self._settle(changed=changed or made > 0)
        return SummariesLeft(left, left * elapsed / made if made else 0.0)

    @property
    def _is_static(self) -> bool:
        return self.model.fingerprint.startswith("static:")

    def _write(self, least: int) -> int:
        describe_missing(self.database, self.kb_id)
        written = 0

        def outdated(transaction: Transaction) -> list[Document]:
            return summaries.outdated(transaction, self.kb_id, least, _BATCH)

        for documents in batches(self.database, outdated):
            with self.database.read() as transaction:
                expanded = summaries.expansions_of(
                    transaction, [document.id for document in documents]
                )
            made = {each.id: _summary(each, expanded.get(each.id)) for each in documents}
            with self.database.write() as transaction:
                knowledge_bases.get_by_id(transaction, self.kb_id)
                put = summaries.put(transaction, self.kb_id, REVISION, made)
            written += put
            if put == len(documents) < _BATCH:
                break
        return written

    def _missing(self, embedder: Embedder) -> dict[str, str]:
        with self.database.read() as transaction:
            return summaries.lacking(transaction, self.kb_id, embedder.fingerprint)

    def _settle(self, *, changed: bool) -> int:
        """Switch to the best complete vectors in one commit; return how many the model lacks.

        Use the model's if complete, or nearly complete and in use; else static ones.
        """
        model = self.model.fingerprint
        with self.database.read() as transaction:
            row = knowledge_bases.get_by_id(transaction, self.kb_id)
            total, left = summaries.counts(transaction, self.kb_id, model)
        chosen = model
        if left and (row.summary_embedder != model or left > total * _FEW):
            try:
                static = self.static()
            except EmbedderError:  # search uses words alone until the model is done
                return left
            changed |= self._embed(static, self._missing(static)) > 0
            chosen = static.fingerprint
        if changed or (chosen, model) != (row.summary_embedder, row.summary_model):
            with self.database.write() as transaction:
                knowledge_bases.get_by_id(transaction, self.kb_id)
                summaries.search_with(transaction, self.kb_id, chosen, model)
        return left

    def _embed(
        self,
        embedder: Embedder,
        texts: Mapping[str, str],
        on_progress: OnProgress | None = None,
        stop: Callable[[], bool] = lambda: False,
        seconds: float = math.inf,
    ) -> int:
        keys, made, start = list(texts), 0, time.perf_counter()
        while made < len(keys) and not stop():
            part = keys[made : made + (_BATCH if made else _SAMPLE)]
            packed = embed(embedder, {key: texts[key] for key in part})
            with self.database.write() as transaction:
                knowledge_bases.get_by_id(transaction, self.kb_id)
                summaries.add_vectors(transaction, self.kb_id, embedder.fingerprint, packed)
            made += len(part)
            if on_progress is not None:
                on_progress(Progress("summaries", made, len(keys), "summaries"))
            if (len(keys) - made) * (time.perf_counter() - start) / made > seconds:
                break
        return made


def _summary(document: Document, expansion: ExpansionRow | None) -> NewSummary:
    title, content = document.title, document.content
    if expansion is not None and expansion.text_hash == text_hash(title, content):
        text = expanded_text(title, expansion.summary, expansion.questions)
    else:
        text = summary_text(title, content, document.description) or document.uri
    return NewSummary(document.content_hash, text, digest(text))


def embed_questions(database: Database, kb_id: str, embedder: Embedder) -> None:
    fingerprint = embedder.fingerprint
    with database.read() as transaction:
        lacking = ratings.unembedded_questions(transaction, kb_id, fingerprint)
    if not lacking:
        return
    vectors = np.array([embedder.embed_query(question) for question in lacking], np.float32)
    with database.write() as transaction:
        knowledge_bases.get_by_id(transaction, kb_id)
        ratings.put_questions(transaction, kb_id, fingerprint, lacking, vectors)
