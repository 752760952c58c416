"""Annotates passages by a language model of llama-index.

What it answers is kept by a hash of what it was asked about: so each passage is paid for once,
whatever stops the work, and however often names that come and go have it annotated anew.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kbkit.annotation.base import Gazetteer, Passage
from kbkit.annotation.model_answers import REVISION, TASK, annotations_of, bare, quoted, read
from kbkit.embedding.llamaindex import retry
from kbkit.errors import LanguageModelError
from kbkit.language_models import (
    CHARACTERS_PER_TOKEN,
    FAILURES,
    AnswerError,
    Said,
    ask,
    model_key,
    model_name,
    open_llm,
)
from kbkit.models import Annotation, AnnotationReport, Problem
from kbkit.recipes import LlmAnnotation
from kbkit.stores.catalog import annotator_answers
from kbkit.stores.catalog.database import Database
from kbkit.third_party import safe_message

if TYPE_CHECKING:
    from llama_index.core.llms import LLM

_BATCH_LENGTH = 16_000
"""Characters of a batch; a longer passage is sent alone."""
_MAX_TOLD = 20
"""Problems of an answer that are sent back to the model."""
_ANSWER_TOKENS = 150
"""Estimated output tokens for a passage."""
_WAIT = 1.0
"""Seconds before a model that could not be reached is asked again."""


def open_annotator(spec: LlmAnnotation, database: Database, kb_id: str) -> LlmAnnotator:
    """The annotator that a recipe names; see `kbkit.annotation.maker.annotator_of`."""
    return LlmAnnotator(open_llm(spec, key="annotation"), spec, database, kb_id)


class LlmAnnotator:
    """Annotates passages with a language model."""

    def __init__(
        self, llm: LLM, spec: LlmAnnotation, database: Database, kb_id: str, *, wait: float = _WAIT
    ) -> None:
        self._llm = llm
        self._spec = spec
        self._database = database
        self._kb_id = kb_id
        self._wait = wait
        self._in_a_row = 0
        self._requests = self._sent = self._answered = 0
        self._failed: list[Problem] = []

    @property
    def fingerprint(self) -> str:
        return f"llm:{model_key(self._llm)}:{REVISION}"

    def annotate(
        self, passages: Sequence[Passage], gazetteer: Gazetteer
    ) -> Sequence[Sequence[Annotation]]:
        """Annotate passages; see `kbkit.annotation.base.Annotator`.

        A passage that the model fails at has one annotation, of its text alone and without a
        frame; it is asked about again when that is made anew.
        """
        said = self._known(passages)
        left = [passage for passage in passages if self._key(passage) not in said]
        for batch in _batches(left, self._spec.batch_size):
            said |= self._ask_about(batch)
        return [
            annotations_of(
                passage, said.get(self._key(passage)) or bare(passage), gazetteer, self.fingerprint
            )
            for passage in passages
        ]

    def report(self, passages: Sequence[Passage] = (), annotated: int = 0) -> AnnotationReport:
        """Estimate the cost of new passages, and report the cost so far.

        Nothing is sent.
        """
        known = self._known(passages)
        left = [passage for passage in passages if self._key(passage) not in known]
        batches = list(_batches(left, self._spec.batch_size))
        characters = sum(len(TASK) + len(quoted(batch)) for batch in batches)
        return AnnotationReport(
            annotated,
            model_name(self._llm),
            len(left),
            characters,
            characters // CHARACTERS_PER_TOKEN,
            len(left) * _ANSWER_TOKENS,
            self._requests,
            self._sent,
            self._answered,
            tuple(self._failed),
        )

    def _ask_about(self, batch: Sequence[Passage]) -> dict[str, list[Any]]:
        """Return the usable statements of a batch, by passage.

        What is wrong with an answer is told the model once. Where nothing can be used, halves are
        asked about, since one passage may be what it fails at.
        """
        found, problem = self._answers(batch)
        self._in_a_row = 0 if found else self._in_a_row + 1
        if self._in_a_row == FAILURES:
            self._in_a_row = 0
            raise LanguageModelError(
                f"{model_name(self._llm)}: failed {FAILURES} times in a row, the last time: "
                f"{problem}; check its service, its key and that it can answer with JSON, then run "
                "this again: earlier answers are kept"
            )
        middle = len(batch) // 2
        if not found and middle:
            return self._ask_about(batch[:middle]) | self._ask_about(batch[middle:])
        self._failed += [
            Problem(passage.document.uri, f"chunk {passage.chunk.id}: {problem}")
            for number, passage in enumerate(batch, 1)
            if number not in found
        ]
        made = {self._key(batch[number - 1]): kept for number, kept in found.items()}
        self._keep(batch, made)
        return made

    def _answers(self, batch: Sequence[Passage]) -> tuple[dict[int, list[Any]], str]:
        given, problem = [quoted(batch)], ""
        found: dict[int, list[Any]] = {}
        for _ in range(2):
            wanted = [number for number in range(1, len(batch) + 1) if number not in found]
            try:
                said = self._ask(*given)
            except AnswerError as error:
                return found, str(error)
            more, wrong = read(said.text, wanted)
            found |= more
            left = [str(number) for number in wanted if number not in more]
            if not left:
                break
            problem, told = wrong[0], "\n".join(wrong[:_MAX_TOLD])
            given += [
                said.text[:_BATCH_LENGTH] or "(nothing)",
                f"That was not as asked:\n{told}\n"
                f"Give one JSON object as described, of passages {', '.join(left)} only.",
            ]
        return found, problem

    def _ask(self, *given: str) -> Said:
        self._requests += 1
        try:
            said = retry(
                lambda: ask(self._llm, TASK, *given, timeout=self._spec.timeout), self._wait
            )
        except AnswerError:
            raise
        except Exception as error:  # a model may raise anything
            reason = safe_message(error, self._spec.arguments)
            raise AnswerError(reason, answered=False) from None
        self._sent += said.input_tokens
        self._answered += said.output_tokens
        return said

    def _key(self, passage: Passage) -> str:
        chunk = passage.chunk
        parts = (self.fingerprint, passage.document.title, *chunk.heading_path, chunk.text)
        asked = "\0".join(parts).encode("utf-8", "surrogatepass")
        return hashlib.blake2b(asked, digest_size=16).hexdigest()

    def _known(self, passages: Sequence[Passage]) -> dict[str, list[Any]]:
        with self._database.read() as transaction:
            keys = [self._key(passage) for passage in passages]
            return annotator_answers.of(transaction, self._kb_id, keys)

    def _keep(self, batch: Sequence[Passage], made: Mapping[str, list[Any]]) -> None:
        chunks = {self._key(passage): passage.chunk.id for passage in batch}
        rows = {key: (chunks[key], statements) for key, statements in made.items()}
        with self._database.write() as transaction:
            annotator_answers.put(transaction, self._kb_id, rows)


def _batches(passages: Sequence[Passage], size: int) -> Iterator[list[Passage]]:
    batch: list[Passage] = []
    length = 0
    for passage in passages:
        taken = len(passage.chunk.text)
        if batch and (len(batch) == size or length + taken > _BATCH_LENGTH):
            yield batch
            batch, length = [], 0
        batch.append(passage)
        length += taken
    if batch:
        yield batch
