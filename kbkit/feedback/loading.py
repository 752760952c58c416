"""Load queries and golden questions in any supported form."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from kbkit.errors import ConfigError
from kbkit.feedback.judgements import Judgements
from kbkit.models.scores import MAX_QUERY_LENGTH, fold_query
from kbkit.recipes import Question, Recipe, golden_questions, load_questions, load_recipe
from kbkit.validation import check_text

Queries = Iterable[str | Question] | Recipe | Judgements | str | Path
"""Queries, golden questions, judgements, a recipe, or the path of a file with one of them."""

GroundTruth = Sequence[Question] | Judgements | Recipe | str | Path
"""Golden questions, judgements, a recipe, or the path of a file with them."""


def load_ground_truth(given: GroundTruth) -> Sequence[Question] | Judgements:
    if isinstance(given, Recipe):
        return golden_questions(given)
    if not isinstance(given, (str, Path)):
        return given
    path = Path(given)
    if path.suffix.lower() in (".yaml", ".yml"):
        return golden_questions(load_recipe(path))
    if path.suffix.lower() == ".qrels":
        return Judgements.from_qrels(path)
    return load_questions(path)


def load_queries(given: Queries) -> tuple[str, ...]:
    """The queries themselves, each once; case and white space do not tell two apart."""
    found: dict[str, str] = {}
    for query in _texts(given):
        cut = " ".join(query.split())[:MAX_QUERY_LENGTH]  # as search and ratings have it
        found.setdefault(fold_query(cut), cut)
    found.pop("", None)
    if not found:
        raise ConfigError("queries: none given; give texts, questions, or a file of them")
    return tuple(found.values())


def _texts(given: Queries) -> list[str]:
    if isinstance(given, Judgements):
        return list(given.queries.values())
    if isinstance(given, Recipe):
        return [question.question for question in golden_questions(given)]
    if isinstance(given, (str, Path)):
        return _of_file(Path(given))
    if not isinstance(given, Iterable):
        raise ConfigError(f"queries={given!r}: give a list of texts or questions, or a file's path")
    return [
        one.question if isinstance(one, Question) else check_text("query", one) for one in given
    ]


def _of_file(path: Path) -> list[str]:
    suffix = path.suffix.lower()
    if suffix in (".yaml", ".yml"):
        return _texts(load_recipe(path))
    if suffix == ".tsv":
        return [question.question for question in load_questions(path)]
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise ConfigError(
            f"{str(path)[:200]}: cannot be read as a file of queries ({_why(error)}); give a list "
            "of texts, or a file with one query a line"
        ) from None
    return [line for line in lines if not line.lstrip().startswith("#")]


def _why(error: Exception) -> str:
    return error.strerror or "no file" if isinstance(error, OSError) else "not UTF-8 text"
