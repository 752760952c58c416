"""A knowledge base on a server, and its feedback."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from kbkit.base_plots import AsyncPlots, Plots
from kbkit.client import calls, chunks, documents
from kbkit.client.declared import BASE, KNOWLEDGE, call, first_page, list_all
from kbkit.client.ingestion import IngestionCalls
from kbkit.client.work import OnProgress, job_request, result_of, run_job
from kbkit.errors import ConfigError
from kbkit.extras import whole
from kbkit.models import Answer, Chunk, Filters, Hits, KnowledgeBaseInfo, Mode, Rating, RelatedChunk
from kbkit.recipes import KnowledgeBaseSpec, Question, RetrievalSpec, check_questions
from kbkit.runtime.validation import check_text, explain_calls, explain_method

if TYPE_CHECKING:
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.tools import FunctionTool

    from kbkit.feedback.evaluation_report import Evaluation
    from kbkit.feedback.judgements import Judgements, Queries
    from kbkit.feedback.judging import JudgingPool, JudgingRound
    from kbkit.feedback.statistics import Agreement
    from kbkit.feedback.tune_report import TuneReport

_HERE = {"kb": "{self.name}"}


def _retrieval(spec: Any) -> dict[str, Any]:
    if not isinstance(spec, RetrievalSpec):
        raise ConfigError(f"retrieval={spec!r}: give a `kbkit.RetrievalSpec`")
    return spec.model_dump(exclude_unset=True)


def _no_model(_: Any) -> None:
    raise ConfigError(
        "llm: a server uses its own language model; leave llm out, or pass the results of "
        "`search` or `context` to yours"
    )


Retrieval = Annotated[RetrievalSpec, _retrieval]
Model = Annotated[Any, _no_model]


def make_retriever(searched: Any, **options: Any) -> BaseRetriever:
    with whole("A retriever"):
        from kbkit.retrieval import llamaindex

    search = llamaindex.asking(searched.search, **options)
    if isinstance(searched, calls.Awaited):
        return llamaindex.AwaitedRetriever(search)
    return llamaindex.KbkitRetriever(search)


class KnowledgeBaseCalls(IngestionCalls, calls.RemoteObject):
    """Requests for a knowledge base; see `kbkit.KnowledgeBase`.

    Attributes:
        sources: Sources that `refresh` reads.
    """

    @call(f"GET {BASE}")
    def info(self) -> KnowledgeBaseInfo:
        """Return figures: documents, chunks, types, states, embedder, times."""

    @call(f"POST {KNOWLEDGE}/search", body=_HERE)
    def search(
        self,
        query: str,
        *,
        limit: int = 10,
        mode: str | Mode = Mode.HYBRID,
        filters: documents.Conditions | None = None,
        retrieval: Retrieval | None = None,
        graph: float | None = None,
    ) -> Hits:
        """Find the chunks that answer a query, best first."""

    @call(f"POST {KNOWLEDGE}/chunks/{{chunk_id}}/similar?kb={{self.name}}")
    def similar(
        self, chunk_id: str, *, limit: int = 10, filters: documents.Conditions | None = None
    ) -> Hits:
        """Find other chunks about the same subject as a chunk, nearest first."""

    @call(f"GET {KNOWLEDGE}/chunks/{{chunk_id}}/related?kb={{self.name}}")
    def related(self, chunk_id: str, *, limit: int = 10) -> list[RelatedChunk]:
        """Find chunks that share rare subjects with a chunk, in any words."""

    @call(f"POST {KNOWLEDGE}/ask", body=_HERE)
    def ask(
        self,
        query: str,
        *,
        limit: int = 5,
        llm: Model | None = None,
        filters: documents.Conditions | None = None,
    ) -> Answer:
        """Answer a question from the best passages with the server's language model."""

    @call(f"GET {KNOWLEDGE}/chunks/{{chunk_id}}?kb={{self.name}}")
    def context(self, chunk_id: str, *, before: int = 1, after: int = 1) -> list[Chunk]:
        """Return a chunk with its neighbours, in document order."""

    @explain_method
    def as_retriever(
        self,
        *,
        limit: int = 10,
        mode: str | Mode = Mode.HYBRID,
        filters: Filters | Mapping[str, Any] | None = None,
    ) -> BaseRetriever:
        """Return the search as a llama-index retriever, awaited if this client is."""
        return make_retriever(self, limit=limit, mode=mode, filters=filters)

    @calls.steps
    def as_tool(
        self, *, limit: int = 5, filters: Filters | Mapping[str, Any] | None = None
    ) -> calls.Steps[FunctionTool]:
        """Return the search as a llama-index tool for agents."""
        with whole("A tool"):
            from kbkit.retrieval.llamaindex import search_tool

        description = (yield from KnowledgeBaseCalls.info(self)).description
        kb: Any = self
        awaited = isinstance(self, calls.Awaited)
        return search_tool(self.name, description, kb.search, limit, filters, awaited=awaited)

    add = documents.DocumentsCalls.add
    rate = chunks.RatingsCalls.add

    @call(f"GET {BASE}/spec")
    def _spec(self) -> KnowledgeBaseSpec: ...

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"


@explain_calls
class RemoteKnowledgeBase(KnowledgeBaseCalls, calls.Blocking):
    """A remote knowledge base with the calls of a local one."""

    def __init__(self, transport: calls.Transport, name: str) -> None:
        super().__init__(transport, self)
        self.name = name
        self.documents = documents.RemoteDocuments(transport, self)
        self.chunks = chunks.RemoteChunks(transport, self)
        self.ratings = chunks.RemoteRatings(transport, self)
        self.sources = chunks.RemoteSources(transport, self)
        self.annotations = chunks.RemoteAnnotations(transport, self)
        self.feedback = RemoteFeedback(transport, self, self.ratings)
        self.plot = Plots(self.documents, self.chunks, self.ratings)
        self._handle = chunks.RemoteHandle(transport, self)

    @property
    def id(self) -> str:
        """Permanent id."""
        return self.info().id

    @property
    def url(self) -> str:
        """Address of the server."""
        return self._transport.url

    @property
    def spec(self) -> KnowledgeBaseSpec:
        """The settings: chunking, embedding, retrieval, storage, site."""
        return self._spec()

    def _repr_html_(self) -> str:
        return self.info()._repr_html_()


@explain_calls
class AsyncKnowledgeBase(KnowledgeBaseCalls, calls.Awaited):
    """A remote knowledge base whose calls are awaited."""

    def __init__(self, transport: calls.AsyncTransport, name: str) -> None:
        super().__init__(transport, self)
        self.name = name
        self.documents = documents.AsyncDocuments(transport, self)
        self.chunks = chunks.AsyncChunks(transport, self)
        self.ratings = chunks.AsyncRatings(transport, self)
        self.sources = chunks.AsyncSources(transport, self)
        self.annotations = chunks.AsyncAnnotations(transport, self)
        self.feedback = AsyncFeedback(transport, self)
        self.plot = AsyncPlots(self.documents, self.chunks, self.ratings)

    async def id(self) -> str:
        return (await self.info()).id

    async def spec(self) -> KnowledgeBaseSpec:
        return await self._spec()


def _pool(answer: Any) -> JudgingPool:
    from kbkit.feedback.judging import JudgingPool

    return JudgingPool.from_dict(answer)


class FeedbackCalls:
    """Requests for feedback; see `kbkit.knowledge_base.feedback.Feedback`."""

    _base: documents.Named

    @calls.steps
    def judgements(self) -> calls.Steps[Judgements]:
        """Return graded judgements made from ratings that name a query."""
        from kbkit.feedback.judgements import Judgement, Judgements

        first = first_page(Judgement, f"{BASE}/judgements", self)
        return Judgements(tuple((yield from list_all(first))))

    @calls.steps
    def evaluate(
        self,
        questions: Sequence[Question] | Judgements | None = None,
        *,
        mode: str | Mode = Mode.HYBRID,
        retrieval: RetrievalSpec | None = None,
        against: str | Mode | RetrievalSpec | Evaluation | None = None,
        k: int = 10,
        wait: bool = False,
        on_progress: OnProgress | None = None,
    ) -> calls.Steps[Evaluation]:
        """Measure search on the server with queries whose answers are known."""
        from kbkit.feedback.evaluation_report import Evaluation, compare

        baseline = against if isinstance(against, Evaluation) else None
        body = {**_ground_truth(questions), "mode": mode, "retrieval": retrieval, "k": k}
        body |= {"improve": wait, "against": against if baseline is None else None}
        request = job_request(self._base.name, "evaluate", body)
        parse = result_of(Evaluation, "evaluation")
        evaluation = yield from run_job(parse, request, on_progress=on_progress)
        return evaluation if baseline is None else compare(evaluation, baseline)

    @calls.steps
    def tune(
        self,
        questions: Sequence[Question] | Judgements | None = None,
        *,
        keep: bool = False,
        seed: int = 0,
        wait: bool = False,
        on_progress: OnProgress | None = None,
    ) -> calls.Steps[TuneReport]:
        """Tune the weights of hybrid search on the server."""
        from kbkit.feedback.tune_report import TuneReport

        body = {**_ground_truth(questions), "keep": keep, "seed": seed, "improve": wait}
        request = job_request(self._base.name, "tune", body)
        parse = result_of(TuneReport, "tuning")
        return (yield from run_job(parse, request, on_progress=on_progress))

    @call(f"POST {BASE}/pool", read=_pool)
    def pool(
        self, query: str, *, limit: int = 10, unshown: int = 5, seed: int = 0, rater: str = ""
    ) -> JudgingPool:
        """Return candidates for judging a query: hits of every mode, and some that none found."""

    @calls.steps
    def agreement(self) -> calls.Steps[Agreement]:
        """Measure agreement of people who rated the same chunks for the same queries."""
        from kbkit.feedback.statistics import agreement

        return agreement((yield from list_all(first_page(Rating, f"{BASE}/ratings", self))))

    @call("GET /api/caller", key="rater")
    def _rater(self) -> str: ...


@explain_calls
class RemoteFeedback(FeedbackCalls, calls.Blocking):
    """Feedback of a knowledge base on a server."""

    def __init__(
        self, transport: calls.Transport, base: documents.Named, ratings: chunks.RemoteRatings
    ) -> None:
        super().__init__(transport, base)
        self._ratings = ratings

    def judging(
        self, queries: Queries, *, limit: int = 10, unshown: int = 5, seed: int = 0, rater: str = ""
    ) -> JudgingRound:
        """Start or continue a judging round over the pools of some queries."""
        from kbkit.feedback.judgements import load_queries
        from kbkit.feedback.judging import JudgingRound

        texts = load_queries(queries)
        rater = check_text("rater", rater) or self._rater()
        return JudgingRound(
            self, self._ratings, texts, limit=limit, unshown=unshown, seed=seed, rater=rater
        )


class AsyncFeedback(FeedbackCalls, calls.Awaited):
    """Feedback of a knowledge base on a server, awaited."""

    def judging(self, queries: Queries, **_: Any) -> JudgingRound:
        """Raise `ConfigError`: a judging round needs the blocking client."""
        raise ConfigError(
            "judging: a round needs the blocking client; use kbkit.connect(url), or await "
            "`feedback.pool(query)` and `kb.rate(chunk, score, query=query)`"
        )


def _ground_truth(questions: Any) -> dict[str, Any]:
    if questions is None:
        return {}
    if hasattr(questions, "grades"):
        if not questions.grades:
            raise ConfigError(
                "there are no judgements; rate some chunks of a search, or give golden questions"
            )
        return {"judgements": questions.grades}
    return {"questions": check_questions(questions)}
