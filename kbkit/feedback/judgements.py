"""Graded judgements made from ratings."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from kbkit.errors import ConfigError
from kbkit.models import Rating
from kbkit.models.ratings import MAX_QUERY_LENGTH, fold_query, latest_scores
from kbkit.models.values import Several
from kbkit.recipes import Question, Recipe, golden_questions, load_questions, load_recipe
from kbkit.runtime.validation import check_integer, check_text

if TYPE_CHECKING:
    import pandas as pd


def query_id(query: str) -> str:
    digest = hashlib.sha256(fold_query(query).encode("utf-8", "replace")).hexdigest()
    return f"q{digest[:12]}"


MAX_GRADE = 100
"""Maximum grade of imported judgements; ratings go to 3."""


def _topics_path(qrels: Path) -> Path:
    return qrels.with_name(qrels.name + ".topics.tsv")


def _queries(path: Path) -> dict[str, str]:
    """Return queries by id. Queries that differ only in case or white space become one text."""
    queries: dict[str, str] = {}
    wordings: dict[str, str] = {}
    for number, line in _lines(path):
        topic, _, query = line.partition("\t")
        if not topic.strip() or not query.strip():
            raise ConfigError(f"{path}:{number}: not a query id, a tab and a query")
        if topic.strip() in queries:
            raise ConfigError(f"{path}:{number}: the query id {topic.strip()!r} is repeated")
        text = " ".join(query.split())
        queries[topic.strip()] = wordings.setdefault(fold_query(text), text)
    return queries


def _grade_of(text: str, where: str) -> int:
    digits = text.removeprefix("-")
    if digits.isascii() and digits.isdecimal() and len(digits) <= 6:
        grade = max(0, int(text))  # TREC marks spam with grades below 0
        if grade <= MAX_GRADE:
            return grade
    raise ConfigError(f"{where}: grade {text!r}: give a whole number up to {MAX_GRADE}")


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "not UTF-8 text"
        raise ConfigError(
            f"{str(path)[:200]}: {why}; name a file of UTF-8 text, or give queries as a list"
        ) from None
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield number, line


@dataclass(frozen=True, slots=True)
class Judgement:
    """Judgement of one chunk for one query.

    Attributes:
        query: As first asked, white space folded.
        grade: 0 for not relevant; from ratings 1 (3 stars), 2 (4 stars) or 3 (5 stars).
        raters: Number of raters; 0 if unknown.
    """

    query: str
    chunk_id: str
    grade: int
    raters: int = 0


@dataclass(frozen=True, slots=True)
class Judgements(Several[Judgement]):
    """Judgements of chunks, at most one per query and chunk, grouped by query."""

    _items: ClassVar = "judgements"
    judgements: tuple[Judgement, ...] = ()

    @classmethod
    def of(cls, grades: Mapping[str, Mapping[str, int]]) -> Self:
        """Make judgements from grades by query and chunk id.

        Raises:
            ConfigError: A query is empty or repeated, or a grade is not an integer from 0 to 100.
        """
        judgements = [
            Judgement(
                query=_query(query),
                chunk_id=check_text("chunk id", chunk_id),
                grade=check_integer("grade", grade, 0, MAX_GRADE),
            )
            for query, chunks in grades.items()
            for chunk_id, grade in chunks.items()
        ]
        if len({fold_query(query) for query in grades}) < len(grades):
            raise ConfigError("judgements: two queries differ in case or white space only")
        return cls(tuple(judgements))

    @classmethod
    def from_ratings(cls, ratings: Iterable[Rating], chunk_ids: Collection[str]) -> Self:
        """Make judgements from ratings of chunks that name a query.

        The last rating of a rater counts; queries that differ only in case or white space are one.
        The grade is the mean of all raters' scores, rounded (half up), minus 2, at least 0: 1 and 2
        stars are not relevant, 3 to 5 stars are grades 1 to 3.

        Args:
            ratings: Oldest first.
            chunk_ids: Ids of existing chunks; ratings of others are left out.
        """
        scores = latest_scores(rating for rating in ratings if rating.target.id in chunk_ids)
        judgements = []
        for query, chunks in scores.items():
            for chunk_id, by_rater in chunks.items():
                average = sum(by_rater.values()) / len(by_rater)
                grade = max(0, int(average + 0.5) - 2)
                judgements.append(Judgement(query, chunk_id, grade, len(by_rater)))
        return cls(tuple(judgements))

    @classmethod
    def from_qrels(cls, path: str | Path, topics: str | Path | None = None) -> Self:
        """Read judgements that `to_qrels` wrote, or others in TREC's format.

        Args:
            path: The qrels. Each line has query id, an ignored word, chunk id and grade, separated
                by white space. Grades below 0 count as 0.
            topics: The queries. Each line has id, tab and text. By default the file that `to_qrels`
                writes.

        Raises:
            ConfigError: A file cannot be read or has an invalid line.
        """
        topics_path = _topics_path(Path(path)) if topics is None else Path(topics)
        queries = _queries(topics_path)
        grades_of: dict[str, dict[str, int]] = {}
        for number, line in _lines(Path(path)):
            where, parts = f"{Path(path)}:{number}", line.split()
            if len(parts) != 4:
                raise ConfigError(f"{where}: not a query id, 0, a chunk id and a grade")
            topic, _, chunk_id, text = parts
            if topic not in queries:
                raise ConfigError(f"{where}: no query {topic!r} in {topics_path}; add it there")
            grades = grades_of.setdefault(queries[topic], {})
            grade = _grade_of(text, where)
            if grades.setdefault(chunk_id, grade) != grade:
                raise ConfigError(
                    f"{where}: {chunk_id} has another grade for that query above; keep one"
                )
        return cls.of(grades_of)

    def to_qrels(self, path: str | Path) -> Path:
        """Write TREC qrels (``docs.qrels``) and the queries (``docs.qrels.topics.tsv``).

        Returns:
            The path of the queries.

        Raises:
            ConfigError: A file cannot be written.
        """
        path, qrels = Path(path), []
        for query, chunks in self.grades.items():
            for chunk_id, grade in chunks.items():
                if chunk_id.split() != [chunk_id]:
                    raise ConfigError(f"{path}: chunk id {chunk_id!r}: qrels need a single word")
                qrels.append(f"{query_id(query)} 0 {chunk_id} {grade}\n")
        topics_path = _topics_path(path)
        topics = [f"{query_id(query)}\t{query}\n" for query in self.grades]
        try:
            path.write_text("".join(qrels), encoding="utf-8", newline="\n")
            topics_path.write_text("".join(topics), encoding="utf-8", newline="\n")
        except OSError as error:
            raise ConfigError(
                f"{path}: {error.strerror}; name a file in a folder that you may write to"
            ) from error
        return topics_path

    @property
    def queries(self) -> dict[str, str]:
        """The queries by id, a hash of the folded query."""
        return {query_id(judgement.query): judgement.query for judgement in self.judgements}

    @property
    def grades(self) -> dict[str, dict[str, int]]:
        """The grades by query and chunk id."""
        by_query: dict[str, dict[str, int]] = {}
        for judgement in self.judgements:
            by_query.setdefault(judgement.query, {})[judgement.chunk_id] = judgement.grade
        return by_query

    def to_frame(self) -> pd.DataFrame:
        """Return one row per judgement: query, chunk, grade and raters."""
        import pandas as pd

        columns = ["query_id", "query", "chunk_id", "grade", "raters"]
        rows: list[tuple[Any, ...]] = [
            (query_id(item.query), item.query, item.chunk_id, item.grade, item.raters)
            for item in self.judgements
        ]
        return pd.DataFrame(rows, columns=columns).astype({"grade": int, "raters": int})

    def __repr__(self) -> str:
        return f"<Judgements: {len(self)} of {len(self.queries)} queries>"

    def _repr_html_(self) -> str:
        return self.to_frame().to_html(index=False, max_rows=20)


def _query(value: Any) -> str:
    query = " ".join(check_text("query", value).split())
    if not query:
        raise ConfigError("judgements: a query is empty; leave it out")
    return query


Queries = Iterable[str | Question] | Recipe | Judgements | str | Path
"""Queries, golden questions, judgements, a recipe, or the path of a file with one of them."""

GroundTruth = Sequence[Question] | Judgements | Recipe | str | Path
"""Golden questions, judgements, a recipe, or the path of a file with them."""


_QUESTION_FILES = (".yaml", ".yml", ".tsv", ".qrels")


def load_ground_truth(source: GroundTruth) -> Sequence[Question] | Judgements:
    if isinstance(source, Recipe):
        return golden_questions(source)
    if not isinstance(source, (str, Path)):
        return source
    path = Path(source)
    if path.suffix.lower() in (".yaml", ".yml"):
        return golden_questions(load_recipe(path))
    if path.suffix.lower() == ".qrels":
        return Judgements.from_qrels(path)
    return load_questions(path)


def load_queries(source: Queries) -> tuple[str, ...]:
    """Return distinct queries, ignoring case and white space."""
    distinct: dict[str, str] = {}
    for query in _texts(source):
        shortened = " ".join(query.split())[:MAX_QUERY_LENGTH]  # as in searches and ratings
        distinct.setdefault(fold_query(shortened), shortened)
    distinct.pop("", None)
    if not distinct:
        raise ConfigError("queries: none given; give texts, questions, or a file of them")
    return tuple(distinct.values())


def _texts(source: Queries) -> list[str]:
    if isinstance(source, (str, Path)) and Path(source).suffix.lower() not in _QUESTION_FILES:
        return [line for _, line in _lines(Path(source)) if not line.lstrip().startswith("#")]
    if isinstance(source, (str, Path, Recipe)):
        source = load_ground_truth(source)
    if isinstance(source, Judgements):
        return list(source.queries.values())
    if not isinstance(source, Iterable):
        raise ConfigError(
            f"queries={source!r}: give a list of texts or questions, or a file's path"
        )
    return [
        query.question if isinstance(query, Question) else check_text("query", query)
        for query in source
    ]
