"""Judgements on disk, in the format that TREC's tools read (qrels), and their queries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from kbkit.errors import ConfigError
from kbkit.feedback.query_ids import query_id
from kbkit.models.scores import fold_query

MAX_GRADE = 100
"""Largest grade that is taken from elsewhere; those from ratings go to 3."""

Grades = Mapping[str, Mapping[str, int]]
"""By query, the grade of each judged chunk's id."""


def topics_path(qrels: Path) -> Path:
    """Where the queries of a qrels file stand."""
    return qrels.with_name(qrels.name + ".topics.tsv")


def write_qrels(grades: Grades, path: Path) -> Path:
    """Write judgements and their queries.

    Returns:
        The path of the queries.

    Raises:
        ConfigError: A file cannot be written, or a chunk id is not one word.
    """
    topics = [f"{query_id(query)}\t{query}\n" for query in grades]
    qrels = []
    for query, chunks in grades.items():
        for chunk_id, grade in chunks.items():
            if chunk_id.split() != [chunk_id]:
                raise ConfigError(f"{path}: {chunk_id!r} cannot stand in qrels: no word")
            qrels.append(f"{query_id(query)} 0 {chunk_id} {grade}\n")
    beside = topics_path(path)
    try:
        path.write_text("".join(qrels), encoding="utf-8", newline="\n")
        beside.write_text("".join(topics), encoding="utf-8", newline="\n")
    except OSError as error:
        raise ConfigError(
            f"{path}: {error.strerror}; name a file in a folder that you may write to"
        ) from error
    return beside


def read_qrels(path: Path, topics: Path | None) -> Grades:
    """Read judgements.

    Raises:
        ConfigError: A file cannot be read or has a wrong line.
    """
    beside = topics or topics_path(path)
    queries = _queries(beside)
    found: dict[str, dict[str, int]] = {}
    for number, line in _lines(path):
        parts = line.split()
        if len(parts) != 4:
            raise ConfigError(f"{path}:{number}: not a query id, 0, a chunk id and a grade")
        known, _, chunk_id, text = parts
        if known not in queries:
            raise ConfigError(f"{path}:{number}: no query {known!r} in {beside}; add it there")
        grades = found.setdefault(queries[known], {})
        grade = _grade(text, f"{path}:{number}")
        if grades.setdefault(chunk_id, grade) != grade:
            raise ConfigError(
                f"{path}:{number}: {chunk_id} has another grade for that query above; keep one"
            )
    return found


def _queries(path: Path) -> dict[str, str]:
    """Queries by id; ids of queries that differ in case or white space only mean one query."""
    queries: dict[str, str] = {}
    first: dict[str, str] = {}
    for number, line in _lines(path):
        known, _, query = line.partition("\t")
        if not known.strip() or not query.strip():
            raise ConfigError(f"{path}:{number}: not a query id, a tab and a query")
        if known.strip() in queries:
            raise ConfigError(f"{path}:{number}: the query id {known.strip()!r} is there already")
        text = " ".join(query.split())
        queries[known.strip()] = first.setdefault(fold_query(text), text)
    return queries


def _grade(text: str, where: str) -> int:
    digits = text.removeprefix("-")
    if digits.isascii() and digits.isdecimal() and len(digits) <= 6:
        grade = max(0, int(text))  # TREC marks spam with grades below 0
        if grade <= MAX_GRADE:
            return grade
    raise ConfigError(f"{where}: grade {text!r}: give a whole number up to {MAX_GRADE}")


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines that are not empty, with their numbers."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}; name a file that can be read") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text (byte {error.start}); save it so") from error
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield number, line
