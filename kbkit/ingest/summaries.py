"""Document summaries, so that search can rank whole documents.

A summary consists of title, description and outline of headings, and is made after the ingest. A
language model can describe documents instead: answers are stored by request, so each text is sent
once, even if the work stops. Documents and answers are untrusted: answers are parsed strictly and
stored as plain lines.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

import numpy as np

from kbkit.embedding import Embedder
from kbkit.errors import EmbedderError, LanguageModelError
from kbkit.ingest import cutting
from kbkit.ingest.embedding import embed
from kbkit.models import Document, Expansion, Problem, Progress
from kbkit.models.values import plain, quotation_mark
from kbkit.runtime import language_models
from kbkit.runtime.progress import OnProgress
from kbkit.stores.catalog import knowledge_bases, ratings, reading, summaries
from kbkit.stores.catalog.database import Database, Transaction, batches
from kbkit.stores.catalog.summaries import ExpansionRow, NewSummary
from kbkit.text.markdown.structure import outline

if TYPE_CHECKING:
    from llama_index.core.llms import LLM


def text_hash(title: str, content: str) -> str:
    return cutting.digest(f"{title}\0{content}")


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
        few: bool = False,
        on_progress: OnProgress | None = None,
        stop: Callable[[], bool] = lambda: False,
    ) -> SummariesLeft:
        """Make missing summaries and embed them.

        The model stops after a few of them if all would take longer than `seconds`, and does not
        begin for ``few`` new ones.
        """
        self._write(summaries.REVISION if renew else 0)
        missing = self._missing(self.model)
        if not self.model.fingerprint.startswith("static:") and len(missing) > _SAMPLE:
            self._settle()
            if few:  # while many others wait
                missing = {}
        start = time.perf_counter()
        embedded = self._embed(self.model, missing, on_progress, stop, seconds)
        elapsed = time.perf_counter() - start
        lacking = self._settle()
        return SummariesLeft(lacking, lacking * elapsed / embedded if embedded else 0.0)

    def make_few(self, document_ids: Collection[str] | None) -> SummariesLeft:
        """Make the summaries of a few documents; the time does not depend on all others."""
        used = self.database.look_up(knowledge_bases.get_by_id, self.kb_id).summary_embedder
        embedder = self.static() if used.startswith("static:") else self.model
        is_few = document_ids is not None and len(document_ids) <= _SAMPLE
        if not is_few or used != embedder.fingerprint:
            return self.make(seconds=0.0, renew=False, few=True)
        self._write(0, document_ids)
        self._embed(embedder, self._missing(embedder, document_ids))
        with self.database.write() as transaction:
            row = knowledge_bases.get_by_id(transaction, self.kb_id)
            if summaries.has_changes(transaction, row):
                summaries.show_changes(transaction, self.kb_id)
        return SummariesLeft(int(used != self.model.fingerprint))

    def _write(self, min_revision: int, ids: Collection[str] | None = None) -> None:
        """Replace summaries that a changed description, an answer or a new version outdated."""

        def outdated(transaction: Transaction) -> list[Document]:
            return summaries.outdated_documents(transaction, self.kb_id, min_revision, _BATCH, ids)

        for documents in batches(self.database, outdated):
            ids_read = [document.id for document in documents]
            expanded = self.database.look_up(summaries.expansions_of, ids_read)
            new = {each.id: _summary(each, expanded.get(each.id)) for each in documents}
            count = self.database.commit(summaries.put, self.kb_id, summaries.REVISION, new)
            if count == len(documents) < _BATCH:
                break

    def _missing(self, embedder: Embedder, ids: Collection[str] | None = None) -> dict[str, str]:
        return self.database.look_up(summaries.lacking, self.kb_id, embedder.fingerprint, ids)

    def _settle(self) -> int:
        """Switch to the best complete vectors in one commit; return how many the model lacks.

        Use the model's if complete, or nearly complete and in use; else static ones.
        """
        model = self.model.fingerprint
        with self.database.read() as transaction:
            row = knowledge_bases.get_by_id(transaction, self.kb_id)
            total, lacking = summaries.counts(transaction, self.kb_id, model)
        chosen = model
        if lacking and (row.summary_embedder != model or lacking > total * _FEW):
            try:
                static = self.static()
            except EmbedderError:  # search uses words alone until the model is done
                return lacking
            self._embed(static, self._missing(static))
            chosen = static.fingerprint
        with self.database.write() as transaction:
            row = knowledge_bases.get_by_id(transaction, self.kb_id)
            used = row.summary_embedder, row.summary_model
            if used != (chosen, model) or summaries.has_changes(transaction, row):
                summaries.search_with(transaction, self.kb_id, chosen, model)
        return lacking

    def _embed(
        self,
        embedder: Embedder,
        texts: Mapping[str, str],
        on_progress: OnProgress | None = None,
        stop: Callable[[], bool] = lambda: False,
        seconds: float = math.inf,
    ) -> int:
        keys, embedded, start = list(texts), 0, time.perf_counter()
        while embedded < len(keys) and not stop():
            batch_keys = keys[embedded : embedded + (_BATCH if embedded else _SAMPLE)]
            packed = embed(embedder, {key: texts[key] for key in batch_keys})
            self.database.commit(summaries.add_vectors, self.kb_id, embedder.fingerprint, packed)
            embedded += len(batch_keys)
            if on_progress is not None:
                on_progress(Progress("summaries", embedded, len(keys), "summaries"))
            if (len(keys) - embedded) * (time.perf_counter() - start) / embedded > seconds:
                break
        return embedded


def _summary(document: Document, expansion: ExpansionRow | None) -> NewSummary:
    title, content = document.title, document.content
    if expansion is not None and expansion.text_hash == text_hash(title, content):
        name = cutting.short_title(title).rstrip(".")
        text = ". ".join(filter(None, (name, expansion.summary)))
        for question in expansion.questions:
            if len(text) + 1 + len(question) <= cutting.MAX_SUMMARY_LENGTH:
                text = f"{text} {question}"
        text = text[: cutting.MAX_SUMMARY_LENGTH].rstrip()
    else:
        text = cutting.summary_text(title, content, document.description)
    return cutting.new_summary(document, text)


def embed_questions(database: Database, kb_id: str, embedder: Embedder) -> None:
    fingerprint = embedder.fingerprint
    lacking = database.look_up(ratings.unembedded_questions, kb_id, fingerprint)
    if not lacking:
        return
    vectors = np.array([embedder.embed_query(question) for question in lacking], np.float32)
    with database.write() as transaction:
        knowledge_bases.get_by_id(transaction, kb_id)
        ratings.put_questions(transaction, kb_id, fingerprint, lacking, vectors)


PROMPT_REVISION = 1
"""Version of the prompt; raise it to ask again."""
SUMMARY_LENGTH = 350
QUESTION_LENGTH = 150
TEXT_LENGTH = 6_000
"""Characters of the start of a document that are sent to a model."""

_OUTLINE_LENGTH = 1_500
_MAX_ANSWER_LENGTH = 20_000
_TIMEOUT = 600  # seconds
_EXPANDED = 24  # documents
_TASK = Template(" ".join(Path(__file__).with_name("task.txt").read_text("utf-8").split()))


@dataclass(frozen=True, slots=True)
class Expander:
    """Runs a language model on the documents of a knowledge base.

    Attributes:
        questions: Number of questions for a document.
        arguments: Arguments of the model; may contain secrets, so never show them.
    """

    database: Database
    kb_id: str
    llm: LLM
    questions: int
    arguments: Mapping[str, Any]

    @property
    def model(self) -> str:
        return language_models.model_name(self.llm)

    @property
    def _key(self) -> str:
        return f"{language_models.model_key(self.llm)}:{PROMPT_REVISION}:{self.questions}"

    def estimate(self) -> Expansion:
        ids = self._unanswered_ids()
        messages = map(self._messages, self._documents(ids))
        characters = sum(len(message) for both in messages for message in both)
        written = len(ids) * (SUMMARY_LENGTH + self.questions * QUESTION_LENGTH)
        per_token = language_models.CHARACTERS_PER_TOKEN
        tokens = characters // per_token, written // per_token
        return Expansion(self.model, len(ids), characters, *tokens)

    def expand(
        self,
        make_summaries: Callable[[], object],
        *,
        on_progress: OnProgress | None = None,
        stop: Callable[[], bool] = lambda: False,
    ) -> Expansion:
        ids = self._unanswered_ids()
        written, in_a_row, failed = 0, 0, list[Problem]()
        answers = self.database.look_up(summaries.expansion_keys, self.kb_id)
        has_answered = any(model == self._key for _, model in answers.values())
        try:
            for number, document in enumerate(self._documents(ids), 1):
                if stop():
                    break
                try:
                    written += self._write(document)
                    has_answered, in_a_row = True, 0
                except language_models.AnswerError as error:
                    failed.append(Problem(document.uri, str(error)))
                    # a working model's bad answer to one document does not count
                    in_a_row += not (has_answered and error.answered)
                if in_a_row == language_models.FAILURES:
                    raise LanguageModelError(
                        f"{self.model}: failed at {in_a_row} documents in a row, the last time: "
                        f"{failed[-1].reason}; check its service, its key and that it can answer "
                        "with JSON, then run this again: earlier results are kept"
                    )
                if on_progress is not None:
                    on_progress(Progress("expand", number, len(ids), document.title))
                if number % _EXPANDED == 0:
                    make_summaries()
        finally:
            make_summaries()
        return replace(self.estimate(), written=written, failed=tuple(failed))

    def _unanswered_ids(self) -> list[str]:
        """Return ids of documents without a current answer, in a pseudo-random order.

        The order separates documents that the model always fails at.
        """
        with self.database.read() as transaction:
            keys = summaries.expansion_keys(transaction, self.kb_id)
            return sorted(
                document.id
                for document in reading.iter_documents(transaction, self.kb_id, in_trash=False)
                if keys.get(document.id) != (text_hash(document.title, document.content), self._key)
            )

    def _documents(self, ids: list[str]) -> Iterator[Document]:
        for start in range(0, len(ids), _EXPANDED):
            yield from self.database.look_up(reading.documents_of, ids[start : start + _EXPANDED])

    def _write(self, document: Document) -> bool:
        """Ask about a document; store the answer unless the document has changed meanwhile."""
        reply = language_models.ask(
            self.llm, *self._messages(document), timeout=_TIMEOUT, arguments=self.arguments
        )
        summary, questions = _parse(reply.text, self.questions)
        hash_read = text_hash(document.title, document.content)
        row = ExpansionRow(hash_read, self._key, summary, tuple(questions))
        line = _description(summary)
        return self.database.commit(summaries.put_expansion, self.kb_id, document, row, line)

    def _messages(self, document: Document) -> tuple[str, str]:
        mark = quotation_mark()
        task = _TASK.substitute(
            summary=SUMMARY_LENGTH, question=QUESTION_LENGTH, questions=self.questions
        )
        headings = [heading.path[-1] for heading in outline(document.content).headings]
        text = document.content[:TEXT_LENGTH]
        page = f"title: {cutting.short_title(plain(document.title))}\n\n{text}"
        if len(document.content) > TEXT_LENGTH and headings:
            page += f"\n\nall headings: {'; '.join(map(plain, headings))}"[:_OUTLINE_LENGTH]
        return task, (
            f"What stands between <{mark}> and </{mark}> is the page.\n<{mark}>\n{page}\n"
            f"</{mark}>\nGive the JSON object."
        )


def remove_expansions(database: Database, kb_id: str) -> int:
    with database.write() as transaction:
        knowledge_bases.get_by_id(transaction, kb_id)
        expanded = summaries.expansions_of(
            transaction, list(summaries.expansion_keys(transaction, kb_id))
        )
        described = [
            document.id
            for document in reading.documents_of(transaction, list(expanded))
            if document.description == _description(expanded[document.id].summary)
        ]
        return summaries.remove_expansions(transaction, kb_id, described)


def _parse(answer: str, questions: int) -> tuple[str, list[str]]:
    fields = language_models.json_object(answer, _MAX_ANSWER_LENGTH)
    summary, raw_questions = fields.get("summary"), fields.get("questions")
    if not isinstance(summary, str) or not isinstance(raw_questions, list):
        reason = "answered JSON without a text as summary and a list as questions"
        raise language_models.AnswerError(reason)
    line = language_models.plain_line(summary, SUMMARY_LENGTH)
    if not line:
        raise language_models.AnswerError("answered with an empty summary")
    texts = (each for each in raw_questions if isinstance(each, str))
    lines = (language_models.plain_line(text, QUESTION_LENGTH) for text in texts)
    return line, list(dict.fromkeys(filter(None, lines)))[:questions]


def _description(summary: str) -> str:
    return language_models.plain_line(summary, cutting.DESCRIPTION_LENGTH)
