"""Annotate passages with a language model of llama-index.

Answers are stored by a hash of the request, so each passage is paid for once.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, TypeAdapter, ValidationError

from kbkit.annotation import Passage
from kbkit.annotation.gazetteer import NameGazetteer
from kbkit.embedding.llamaindex import retry
from kbkit.errors import LanguageModelError
from kbkit.models import Annotation, AnnotationReport, Problem, StatedRelation, StatementType
from kbkit.models.values import fault_reason, plain, quotation_mark
from kbkit.recipes import LlmAnnotation
from kbkit.runtime.language_models import (
    CHARACTERS_PER_TOKEN,
    FAILURES,
    AnswerError,
    ask,
    json_object,
    model_key,
    model_name,
    plain_line,
)
from kbkit.stores.catalog import chunk_annotations
from kbkit.stores.catalog.database import Database
from kbkit.text.markdown.structure import plain_text

if TYPE_CHECKING:
    from llama_index.core.llms import LLM


REVISION = 2
"""Version of the prompt; raise it to ask again."""
STATEMENTS = 8
"""Maximum statements of a passage."""
STATEMENT_LENGTH = 500
NAME_LENGTH = 120
NAMES = 20
"""Maximum names of a kind in a statement."""

_ANSWER_LENGTH = 200_000
_TITLE_LENGTH = 200
_SECTION_LENGTH = 300
_TASK = Path(__file__).with_name("task.txt").read_text("utf-8")
TASK = Template(" ".join(_TASK.split())).substitute(
    statements=STATEMENTS, length=STATEMENT_LENGTH, frames=", ".join(StatementType)
)


_RELATION = re.compile(r"[a-z][a-z0-9_]{1,39}")


def _first_values(value: Any) -> Any:
    if isinstance(value, list):
        return value[:NAMES]
    if isinstance(value, str):
        return [value]
    return [] if value is None else value


def _distinct(lines: list[str]) -> list[str]:
    return list(dict.fromkeys(filter(None, lines)))


_First, _Distinct = BeforeValidator(_first_values), AfterValidator(_distinct)
_Name = Annotated[str, AfterValidator(partial(plain_line, length=NAME_LENGTH))]
_PlainLine = AfterValidator(partial(plain_line, length=STATEMENT_LENGTH))
_Names = Annotated[list[_Name], _First, _Distinct]
_Lines = Annotated[list[Annotated[str, _PlainLine]], _First, _Distinct]


class _Relation(BaseModel):
    source: _Name
    name: Annotated[str, AfterValidator(lambda name: "_".join(name.lower().split()))]
    target: _Name


def _triples(relations: list[_Relation]) -> list[list[str]]:
    valid = (each for each in relations if _RELATION.fullmatch(each.name))
    return [[each.source, each.name, each.target] for each in valid]


def _quote(text: str) -> str:
    return text.encode("utf-8", "replace").decode()[: 4 * STATEMENT_LENGTH]


class _Statement(BaseModel):
    normalized_text: Annotated[str, Field(min_length=1), _PlainLine]
    quote: Annotated[str, AfterValidator(_quote)] = ""
    frame: StatementType | None = None
    domains: _Names = []
    entities: _Names = []
    problems: _Lines = []
    resolutions: _Lines = []
    contexts: _Names = []
    relations: Annotated[list[_Relation], _First, AfterValidator(_triples)] = []
    confidence: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = 0.5


_STATEMENTS = TypeAdapter(Annotated[list[_Statement], Field(min_length=1)])


def quote_passages(passages: Sequence[Passage]) -> str:
    mark = quotation_mark()
    parts = [f"What stands between <{mark}> and </{mark}> is a passage, under its number."]
    for number, passage in enumerate(passages, 1):
        section = plain(" > ".join(passage.chunk.heading_path))[:_SECTION_LENGTH]
        head = f"title: {plain(passage.document.title)[:_TITLE_LENGTH]}"
        head += f"\nsection: {section}" if passage.chunk.heading_path else ""
        parts.append(f"[{number}]\n<{mark}>\n{head}\n\n{passage.chunk.text}\n</{mark}>")
    return "\n\n".join([*parts, "Give the JSON object."])


def read(answer: str, numbers: Sequence[int]) -> tuple[dict[int, list[Any]], list[str]]:
    try:
        entries = json_object(answer, _ANSWER_LENGTH).get("passages")
    except AnswerError as error:
        return {}, [str(error) if answer.strip() else "gave an empty answer"]
    if not isinstance(entries, list):
        return {}, ['"passages": give a list']
    by_number: dict[int, list[Any]] = {}
    wrong: list[str] = []
    for index, entry in enumerate(entries):
        number = entry.get("number") if isinstance(entry, Mapping) else None
        if not isinstance(number, int) or isinstance(number, bool) or number not in numbers:
            allowed = ", ".join(map(str, numbers))
            wrong.append(f'passages[{index}]: "number" must be one of {allowed}')
            continue
        try:
            statements = _STATEMENTS.validate_python(entry.get("statements"))
        except (ValidationError, RecursionError) as error:
            wrong.append(f"passage {number}: {_problems(error)}")
            continue
        telling = [dict(each) for each in statements if each.normalized_text][:STATEMENTS]
        if telling:
            by_number.setdefault(number, telling)
        else:
            wrong.append(f"passage {number}: its statements say nothing")
    text = " ".join(wrong)
    wrong += [
        f"passage {number}: is missing"
        for number in numbers
        if number not in by_number and f"passage {number}:" not in text
    ]
    return by_number, wrong


def annotations_of(
    passage: Passage,
    statements: Sequence[Mapping[str, Any]],
    gazetteer: NameGazetteer,
    made_by: str,
) -> list[Annotation]:
    """Convert a model's statements about a passage to annotations, without invented names."""
    text = passage.chunk.text
    folded = text.casefold()
    mentions = gazetteer.find(text)
    mentioned = {m.name for m in mentions}
    by_spelling = {text[m.start : m.end].casefold(): m.name for m in reversed(mentions)}

    def canonical_name(name: str) -> str:
        """Return the gazetteer's spelling of a name in the passage, else ``""``."""
        canonical = by_spelling.get(name.casefold())
        if canonical is not None or name.casefold() not in folded:
            return canonical or ""
        wholes = (m.name for m in gazetteer.find(name) if m.end - m.start == len(name))
        return next(wholes, name)

    annotations: list[Annotation] = []
    for statement in statements:
        start, end = _span(text, statement["quote"])
        is_whole = (start, end) == (0, len(text))
        names = [m.name for m in mentions if start <= m.start < end and not is_whole]
        in_text = (m.name for m in gazetteer.find(statement["normalized_text"]))
        names += [name for name in in_text if name in mentioned]
        names += filter(None, map(canonical_name, statement["entities"]))
        related = tuple(
            StatedRelation(*ends)
            for source, name, target in statement.get("relations", ())
            if all(ends := (canonical_name(source), name, canonical_name(target)))
            and ends[0] != ends[2]
        )
        names += [name for one in related for name in (one.source, one.target)]
        annotations.append(
            Annotation(
                text=text[start:end],
                normalized_text=statement["normalized_text"],
                frame=StatementType(statement["frame"]) if statement["frame"] else None,
                domains=tuple(statement["domains"]),
                entities=tuple(dict.fromkeys(names)),
                problems=tuple(statement["problems"]),
                resolutions=tuple(statement["resolutions"]),
                contexts=tuple(statement["contexts"]),
                confidence=statement["confidence"],
                start=start,
                end=end,
                annotator=made_by,
                relations=related,
            )
        )
    used = {name for statement in annotations for name in statement.entities}
    unused = dict.fromkeys(m.name for m in mentions if m.name not in used)
    return [replace(annotations[0], entities=(*annotations[0].entities, *unused)), *annotations[1:]]


def bare(passage: Passage) -> list[dict[str, Any]]:
    text = plain_text(passage.chunk.text).encode("utf-8", "replace").decode()
    line = plain(text)[:STATEMENT_LENGTH] or passage.chunk.text.strip()[:STATEMENT_LENGTH]
    return [dict(_Statement.model_construct(normalized_text=line, confidence=0.0))]


def _problems(error: ValidationError | RecursionError) -> str:
    if isinstance(error, RecursionError):
        return "is nested too deeply"
    faults = error.errors()[:3]
    reasons = [f"{'.'.join(map(str, each['loc']))}: {fault_reason(each)}" for each in faults]
    return plain("; ".join(reasons))[:300]


def _span(text: str, quote: str) -> tuple[int, int]:
    """Locate a quotation; the whole text if it is not found."""
    words = quote.strip()
    start = text.find(words) if words else -1
    return (start, start + len(words)) if start >= 0 else (0, len(text))


_BATCH_LENGTH = 16_000  # characters; a longer passage is sent alone
_MAX_PROBLEMS = 20  # problems of an answer that are sent back to the model
_ANSWER_TOKENS = 150  # estimated output tokens for a passage
_WAIT = 1.0  # seconds before an unreachable model is asked again


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
        self.fingerprint = f"llm:{model_key(llm)}:{REVISION}"
        self._in_a_row = 0
        self._requests = self._sent = self._answered = 0
        self._failed: list[Problem] = []

    def annotate(
        self, passages: Sequence[Passage], gazetteer: NameGazetteer
    ) -> Sequence[Sequence[Annotation]]:
        """Annotate passages.

        A failed passage gets one annotation without a statement type, and is sent again when the
        annotation is renewed.
        """
        answers = self._stored_answers(passages)
        unanswered = [passage for passage in passages if self._key(passage) not in answers]
        for batch in _batches(unanswered, self._spec.batch_size):
            answers |= self._ask_about(batch)
        return [
            annotations_of(
                passage,
                answers.get(self._key(passage)) or bare(passage),
                gazetteer,
                self.fingerprint,
            )
            for passage in passages
        ]

    def report(self, passages: Sequence[Passage] = (), annotated: int = 0) -> AnnotationReport:
        """Estimate the cost of new passages, and report the cost so far; send nothing."""
        answered = self._stored_answers(passages)
        unanswered = [passage for passage in passages if self._key(passage) not in answered]
        batches = list(_batches(unanswered, self._spec.batch_size))
        characters = sum(len(TASK) + len(quote_passages(batch)) for batch in batches)
        return AnnotationReport(
            annotated,
            model_name(self._llm),
            len(unanswered),
            characters,
            characters // CHARACTERS_PER_TOKEN,
            len(unanswered) * _ANSWER_TOKENS,
            self._requests,
            self._sent,
            self._answered,
            tuple(self._failed),
        )

    def _ask_about(self, batch: Sequence[Passage]) -> dict[str, list[Any]]:
        """Return the usable statements of a batch, by passage.

        The model gets one chance to correct an answer. A batch without usable statements is halved,
        since one passage may be the cause.
        """
        statements, problem = self._answers(batch)
        self._in_a_row = 0 if statements else self._in_a_row + 1
        if self._in_a_row == FAILURES:
            self._in_a_row = 0
            raise LanguageModelError(
                f"{model_name(self._llm)}: failed {FAILURES} times in a row, the last time: "
                f"{problem}; check its service, its key and that it can answer with JSON, then run "
                "this again: earlier answers are kept"
            )
        middle = len(batch) // 2
        if not statements and middle:
            return self._ask_about(batch[:middle]) | self._ask_about(batch[middle:])
        self._failed += [
            Problem(passage.document.uri, f"chunk {passage.chunk.id}: {problem}")
            for number, passage in enumerate(batch, 1)
            if number not in statements
        ]
        rows = {self._key(batch[n - 1]): (batch[n - 1].chunk.id, statements[n]) for n in statements}
        self._database.commit(chunk_annotations.put_answers, self._kb_id, rows)
        return {key: usable for key, (_, usable) in rows.items()}

    def _answers(self, batch: Sequence[Passage]) -> tuple[dict[int, list[Any]], str]:
        asking = partial(ask, timeout=self._spec.timeout, arguments=self._spec.arguments)
        messages, problem = [quote_passages(batch)], ""
        statements: dict[int, list[Any]] = {}
        for _ in range(2):
            numbers = [number for number in range(1, len(batch) + 1) if number not in statements]
            self._requests += 1
            try:
                reply = retry(partial(asking, self._llm, TASK, *messages), self._wait)
            except AnswerError as error:
                return statements, str(error)
            self._sent += reply.input_tokens
            self._answered += reply.output_tokens
            new_statements, wrong = read(reply.text, numbers)
            statements |= new_statements
            missing = [str(number) for number in numbers if number not in new_statements]
            if not missing:
                break
            problem, details = wrong[0], "\n".join(wrong[:_MAX_PROBLEMS])
            messages += [
                reply.text[:_BATCH_LENGTH] or "(nothing)",
                f"That was not as asked:\n{details}\n"
                f"Give one JSON object as described, of passages {', '.join(missing)} only.",
            ]
        return statements, problem

    def _key(self, passage: Passage) -> str:
        chunk = passage.chunk
        parts = (self.fingerprint, passage.document.title, *chunk.heading_path, chunk.text)
        request = "\0".join(parts).encode("utf-8", "surrogatepass")
        return hashlib.blake2b(request, digest_size=16).hexdigest()

    def _stored_answers(self, passages: Sequence[Passage]) -> dict[str, list[Any]]:
        keys = [self._key(passage) for passage in passages]
        return self._database.look_up(chunk_annotations.answers_of, self._kb_id, keys)


def _batches(passages: Sequence[Passage], size: int) -> Iterator[list[Passage]]:
    batch: list[Passage] = []
    length = 0
    for passage in passages:
        characters = len(passage.chunk.text)
        if batch and (len(batch) == size or length + characters > _BATCH_LENGTH):
            yield batch
            batch, length = [], 0
        batch.append(passage)
        length += characters
    if batch:
        yield batch
