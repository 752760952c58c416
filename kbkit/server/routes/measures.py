"""Routes for judgements, pools, evaluation and tuning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import Response
from pydantic import BaseModel, BeforeValidator, Field, StrictBool, StrictInt

from kbkit.access import Caller as AccessCaller
from kbkit.access import Scope
from kbkit.feedback.evaluation_report import Evaluation
from kbkit.feedback.judgements import Judgement
from kbkit.feedback.tune_report import TuneReport
from kbkit.models import Mode
from kbkit.models.hits import HitDict
from kbkit.recipes import Question, RetrievalSpec
from kbkit.server.access import READ, WRITE, Caller, Kb, WorkspaceOf, base_of
from kbkit.server.parameters import (
    Body,
    Cursor,
    KbName,
    Limit,
    Options,
    QueryText,
    number,
    offset_page,
    whole,
)
from kbkit.server.responses import Paged, Wait, answer
from kbkit.server.routing import Routes, Work
from kbkit.server.tasks import JobRun, evaluate

routes = Routes("/api/knowledge/bases/{name}", "measures")

_AT_ONCE = 100
"""Maximum queries measured within a request; a job measures more."""

_MAX_SEED = 2**32 - 1
Seed = Annotated[Any, number("seed", 0, _MAX_SEED)]
_MAX_QUERIES = 100_000
Questions = Annotated[list[Question], Field(min_length=1, max_length=_MAX_QUERIES)]
Grade = Annotated[StrictInt, BeforeValidator(whole), Field(ge=0, le=100)]
ChunkGrades = Annotated[dict[str, Grade], Field(min_length=1)]
Grades = Annotated[dict[str, ChunkGrades], Field(min_length=1, max_length=_MAX_QUERIES)]


class GroundTruth(Options):
    """Queries with known answers; by default, those of ratings."""

    questions: Questions | None = None
    """Golden questions, measured by page."""
    judgements: Grades | None = None
    """Instead: by query, grades by id of chunk, measured by chunk."""


class EvaluationBody(GroundTruth):
    """An evaluation."""

    mode: Mode = Mode.HYBRID
    """Search mode."""
    retrieval: RetrievalSpec | None = None
    """Ranking settings, instead of the knowledge base's."""
    against: Mode | RetrievalSpec | None = None
    """Baseline: another mode, or other settings."""
    k: Annotated[Any, number("k", 1, 100)] = 10
    """Hits that Recall@k counts."""
    improve: StrictBool = False
    """Embed with models first (needs the scope write)."""
    wait: Wait = True


class OtherBase(GroundTruth):
    """Another knowledge base to learn from."""

    kb: KbName


class TuningBody(GroundTruth):
    """Queries to tune weights by."""

    others: Annotated[list[OtherBase], Field(max_length=100)] = Field(default_factory=list)
    """Other knowledge bases to learn from."""
    keep: StrictBool = False
    """Store the proposed settings if they are better (needs the scope admin)."""
    seed: Seed = 0
    """Seed of the division of queries."""
    improve: StrictBool = False
    """Embed with models first."""
    wait: Wait = True


class PoolBody(Body):
    """A query to judge."""

    query: QueryText
    limit: Annotated[Any, number("limit", 1, 100)] = 10
    """Hits of each mode."""
    unshown: Annotated[Any, number("unshown", 0, 100)] = 5
    """Candidates drawn at random from further down."""
    seed: Seed = 0
    """Seed of the order and of the drawn candidates."""
    rater: Annotated[str, Field(max_length=1_000)] = ""
    """Rater whose ratings are marked; by default the token's name, else the server's user."""


class PooledChunk(BaseModel):
    """A chunk to be judged."""

    hit: HitDict
    found_by: list[Mode] = Field(description="Modes that found it; hide them from judges.")
    score: int | None = Field(description="The rater's earlier score for this query.")
    raters: int = Field(description="How many people rated it for this query.")


class Pool(BaseModel):
    """Candidates for a query, in an order that hides how they were found."""

    query: str
    candidates: list[PooledChunk]


@routes.get("/judgements")
def list_judgements(kb: Kb, limit: Limit, cursor: Cursor = "") -> Paged[Judgement]:
    """List graded judgements from ratings with a query."""
    return offset_page(kb.feedback.judgements(), limit, cursor)


@routes.post("/pool", READ, model=Pool)
def pool_candidates(kb: Kb, body: PoolBody, caller: Caller) -> dict[str, Any]:
    """Find candidates for judging a query: hits of every mode, and some others."""
    pool = kb.feedback.pool(**{**dict(body), "rater": body.rater or caller.name})
    return {"query": pool.query, "candidates": pool.candidates}


@routes.post("/evaluate", READ, work=Evaluation)
def evaluate_search(
    *, kb: Kb, body: EvaluationBody, workspace: WorkspaceOf, caller: Caller, work: Work
) -> Response:
    """Measure search by queries with known answers."""
    for settings in (body.retrieval, body.against):
        _check_settings(caller, settings)
    if body.improve:
        caller.require(Scope.WRITE)
    values = body.model_dump(mode="json", exclude_unset=True, exclude={"wait"})
    arguments = {**values, "kb": kb.name}
    queries: Any = body.questions or body.judgements or kb.feedback.judgements().queries
    if len(queries) <= _AT_ONCE and not body.improve:
        return answer(evaluate(JobRun(workspace, arguments)))
    return work.start("evaluate", arguments, wait=body.wait, key=values)


@routes.post("/tune", WRITE, work=TuneReport)
def tune_search(
    *, kb: Kb, body: TuningBody, workspace: WorkspaceOf, caller: Caller, work: Work
) -> Response:
    """Learn the weights of hybrid search from queries with known answers."""
    for other in body.others:
        base_of(workspace, caller, other.kb)
    if body.keep:
        caller.require(Scope.ADMIN)
    values: Mapping[str, Any] = body.model_dump(mode="json", exclude={"wait"})
    return work.start("tune", {**values, "kb": kb.name}, wait=body.wait, key=values)


def _check_settings(caller: AccessCaller, settings: Mode | RetrievalSpec | None) -> None:
    """Refuse settings that name classes to import, except for admins."""
    if isinstance(settings, RetrievalSpec) and settings.postprocessors:
        caller.require(Scope.ADMIN)
