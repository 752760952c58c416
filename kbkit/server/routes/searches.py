"""Routes for search, context and ask, and for measures of search."""

from typing import Annotated, Any

from fastapi import Response
from pydantic import BaseModel, Field, StrictBool, StrictFloat, StrictInt

from kbkit.errors import ImpossibleError
from kbkit.feedback.evaluation_report import Evaluation
from kbkit.feedback.judgements import Judgement
from kbkit.feedback.tune_report import TuneReport
from kbkit.models import Answer, Context, Hits, Mode
from kbkit.models.hits import HitDict
from kbkit.models.server import Scope
from kbkit.recipes import Question, RetrievalSpec
from kbkit.retrieval.context import MIN_TOKENS
from kbkit.server import parameters
from kbkit.server.access import READ, WRITE, Caller, Kb, SearchesOf, WorkspaceOf
from kbkit.server.responses import Paged, Wait, answer, json_answer
from kbkit.server.routing import Routes, Work
from kbkit.server.tasks import JobRun, evaluate

routes = Routes("/api/knowledge", "search")

_TOKENS = 100_000


class Asked(parameters.Body):
    """A query, and the knowledge bases to search."""

    query: parameters.QueryText
    kb: Annotated[str | None, Field(max_length=200)] = None
    """A knowledge base; short for `kbs` with one name."""
    kbs: parameters.KbNames = None
    filters: parameters.FiltersField = None

    def arguments(self, caller: Caller) -> dict[str, Any]:
        """Return the arguments of the method in Python."""
        if self.kb is not None and self.kbs is not None:
            raise ImpossibleError("kb and kbs: give one of the two")
        values = dict(self)
        kb = values.pop("kb")
        return {**values, "kbs": caller.restrict(self.kbs if kb is None else [kb])}


class SearchBody(Asked):
    """A search."""

    limit: parameters.FewHits = 10
    mode: Mode = Mode.HYBRID
    """`hybrid`, `dense` (by meaning only) or `lexical` (by words only)."""
    retrieval: RetrievalSpec | None = None
    """Ranking settings, instead of the knowledge bases'."""
    graph: Annotated[StrictFloat, Field(ge=0, le=5)] | None = None
    """Weight of graph relations; by default the knowledge bases' setting."""


class AskBody(Asked):
    """A question for a language model, if the server has one."""

    limit: parameters.FewHits = 5


class ContextBody(Asked):
    """A question to collect a context for."""

    max_tokens: Annotated[StrictInt, Field(ge=MIN_TOKENS, le=_TOKENS), parameters.WHOLE] = 2000
    """Maximum tokens of the text."""
    limit: Annotated[StrictInt, Field(ge=1, le=parameters.MAX), parameters.WHOLE] | None = None
    """Maximum passages; by default the server's setting."""


@routes.post("/search", READ, model=Hits)
async def search_knowledge(body: SearchBody, searches: SearchesOf, caller: Caller) -> Response:
    """Find the passages that answer a query, best first."""
    if body.retrieval is not None and body.retrieval.postprocessors:
        caller.require(Scope.ADMIN)  # they import classes
    return json_answer(await searches.answer_async("search", **body.arguments(caller)))


@routes.post("/ask", READ)
def ask_knowledge(body: AskBody, workspace: WorkspaceOf, caller: Caller) -> Answer:
    """Answer a question from the best passages; without a model, return the passages."""
    return workspace.ask(**body.arguments(caller))


@routes.post("/context", READ, model=Context)
async def build_context(body: ContextBody, searches: SearchesOf, caller: Caller) -> Response:
    """Collect passages that answer a question, within a budget of tokens."""
    return json_answer(await searches.answer_async("context", **body.arguments(caller)))


measure_routes = Routes("/api/knowledge/bases/{name}", "measures")

_AT_ONCE = 100
"""Maximum queries measured within a request; a job measures more."""

_MAX_SEED = 2**32 - 1
Seed = Annotated[StrictInt, Field(ge=0, le=_MAX_SEED), parameters.WHOLE]
_MAX_QUERIES = 100_000
Questions = Annotated[list[Question], Field(min_length=1, max_length=_MAX_QUERIES)]
Grade = Annotated[StrictInt, Field(ge=0, le=100), parameters.WHOLE]
ChunkGrades = Annotated[dict[str, Grade], Field(min_length=1)]
_Query = Annotated[str, Field(pattern=r"\S")]
Grades = Annotated[dict[_Query, ChunkGrades], Field(min_length=1, max_length=_MAX_QUERIES)]


class GroundTruth(parameters.Options):
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
    k: Annotated[StrictInt, Field(ge=1, le=100), parameters.WHOLE] = 10
    """Hits that Recall@k counts."""
    improve: StrictBool = False
    """Embed with models first (needs the scope write)."""
    wait: Wait = True


class TuningBody(GroundTruth):
    """Queries to tune weights by."""

    keep: StrictBool = False
    """Store the proposed settings if they are better (needs the scope admin)."""
    seed: Seed = 0
    """Seed of the division of queries."""
    improve: StrictBool = False
    """Embed with models first."""
    wait: Wait = True


class PoolBody(parameters.Body):
    """A query to judge."""

    query: parameters.QueryText
    limit: Annotated[StrictInt, Field(ge=1, le=100), parameters.WHOLE] = 10
    """Hits of each mode."""
    unshown: Annotated[StrictInt, Field(ge=0, le=100), parameters.WHOLE] = 5
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


@measure_routes.get("/judgements")
def list_judgements(kb: Kb, paging: parameters.PagingOf) -> Paged[Judgement]:
    """List graded judgements from ratings with a query."""
    return paging.of(kb.feedback.judgements())


@measure_routes.post("/pool", READ, model=Pool)
def pool_candidates(kb: Kb, body: PoolBody, caller: Caller) -> dict[str, Any]:
    """Find candidates for judging a query: hits of every mode, and some others."""
    pool = kb.feedback.pool(**{**dict(body), "rater": body.rater or caller.name})
    return {"query": pool.query, "candidates": pool.candidates}


@measure_routes.post("/evaluate", READ, work=Evaluation)
def evaluate_search(
    *, kb: Kb, body: EvaluationBody, workspace: WorkspaceOf, caller: Caller, work: Work
) -> Response:
    """Measure search by queries with known answers."""
    for settings in (body.retrieval, body.against):
        if isinstance(settings, RetrievalSpec) and settings.postprocessors:
            caller.require(Scope.ADMIN)  # they import classes
    if body.improve:
        caller.require(Scope.WRITE)
    values = body.model_dump(mode="json", exclude_unset=True, exclude={"wait"})
    arguments = {**values, "kb": kb.name}
    queries: Any = body.questions or body.judgements or kb.feedback.judgements().queries
    if len(queries) <= _AT_ONCE and not body.improve:
        return answer(evaluate(JobRun(workspace, arguments)))
    return work.start("evaluate", arguments, wait=body.wait)


@measure_routes.post("/tune", WRITE, work=TuneReport)
def tune_search(kb: Kb, body: TuningBody, caller: Caller, work: Work) -> Response:
    """Learn the weights of hybrid search from queries with known answers."""
    if body.keep:
        caller.require(Scope.ADMIN)
    return work.run("tune", body, kb=kb.name)
