"""Routes for search, context and ask."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query, Response
from pydantic import Field, WithJsonSchema

from kbkit.access import Caller as AccessCaller
from kbkit.access import Scope
from kbkit.errors import ConfigError, ImpossibleError
from kbkit.models import Answer, Context, Hits
from kbkit.recipes import RetrievalSpec
from kbkit.retrieval.context import MIN_TOKENS
from kbkit.server.access import READ, Caller, SearchesOf, WorkspaceOf
from kbkit.server.parameters import (
    MAX,
    QUERY_SHAPE,
    Body,
    FewHits,
    FewLimit,
    FiltersField,
    GraphWeight,
    KbNames,
    KbsQuery,
    QueryText,
    SearchMode,
    filters_of,
    integer,
    number,
)
from kbkit.server.responses import json_answer
from kbkit.server.routing import Routes

routes = Routes("/api/knowledge", "search")

_TOKENS = 100_000


class Asked(Body):
    """A query, and the knowledge bases to search."""

    query: QueryText
    kb: Annotated[str | None, Field(max_length=200)] = None
    """A knowledge base; short for `kbs` with one name."""
    kbs: KbNames = None
    filters: FiltersField = None

    def arguments(self, caller: AccessCaller) -> dict[str, Any]:
        """Return the arguments of the method in Python."""
        values = dict(self)
        del values["kb"]
        return {**values, "kbs": self._names(caller)}

    def _names(self, caller: AccessCaller) -> list[str] | None:
        if self.kb is not None and self.kbs is not None:
            raise ImpossibleError("kb and kbs: give one of the two")
        names = [self.kb] if self.kb is not None else self.kbs
        if isinstance(names, str):
            names = [names]
        if names is None:
            return caller.restrict(None)
        if not isinstance(names, list) or not all(isinstance(each, str) for each in names):
            raise ConfigError(f"kbs={names!r:.80}: give a list of names")
        if not names:
            raise ConfigError("kbs is empty: name a knowledge base, or leave kbs out for all")
        return caller.restrict(names)


class SearchBody(Asked):
    """A search."""

    limit: FewHits = 10
    mode: SearchMode = "hybrid"
    retrieval: RetrievalSpec | None = None
    """Ranking settings, instead of the knowledge bases'."""
    graph: GraphWeight = None


class AskBody(Asked):
    """A question for a language model, if the server has one."""

    limit: FewHits = 5


class ContextBody(Asked):
    """A question to collect a context for."""

    max_tokens: Annotated[Any, number("max_tokens", MIN_TOKENS, _TOKENS)] = 2000
    """Maximum tokens of the text."""
    limit: Annotated[Any, number("limit", 1, MAX)] | None = None
    """Maximum passages; by default the server's setting."""


Text = Annotated[str, Query(description="A question or some words."), WithJsonSchema(QUERY_SHAPE)]


@routes.post("/search", READ, model=Hits)
async def search_knowledge(body: SearchBody, searches: SearchesOf, caller: Caller) -> Response:
    """Find the passages that answer a query, best first."""
    if body.retrieval is not None and body.retrieval.postprocessors:
        caller.require(Scope.ADMIN)  # they import classes
    return json_answer(await searches.answer_async("search", **body.arguments(caller)))


@routes.get("/search", model=Hits)
async def search_knowledge_by_address(
    *,
    query: Text,
    searches: SearchesOf,
    caller: Caller,
    filters: Annotated[dict[str, Any], filters_of()],
    limit: FewLimit,
    kb: KbsQuery = None,
    mode: Annotated[
        str,
        Query(description="Search mode."),
        WithJsonSchema(
            {"type": "string", "enum": ["hybrid", "dense", "lexical"], "default": "hybrid"}
        ),
    ] = "hybrid",
) -> Response:
    """Find the passages that answer a query, for programs that can only send GET."""
    kbs = caller.restrict(kb)
    answer = await searches.answer_async(
        "search", query, kbs=kbs, limit=limit, mode=mode, filters=filters
    )
    return json_answer(answer)


@routes.post("/ask", READ)
def ask_knowledge(body: AskBody, workspace: WorkspaceOf, caller: Caller) -> Answer:
    """Answer a question from the best passages; without a model, return the passages."""
    return workspace.ask(**body.arguments(caller))


@routes.post("/context", READ, model=Context)
async def build_context(body: ContextBody, searches: SearchesOf, caller: Caller) -> Response:
    """Collect passages that answer a question, within a budget of tokens."""
    return json_answer(await searches.answer_async("context", **body.arguments(caller)))


@routes.get("/context", model=Context)
async def build_context_by_address(
    *,
    query: Text,
    searches: SearchesOf,
    caller: Caller,
    max_tokens: Annotated[
        int, integer("max_tokens", "Maximum tokens of the text.", MIN_TOKENS, _TOKENS, 2000)
    ],
    limit: Annotated[int | None, integer("limit", "Maximum passages.", 1, MAX, None)],
    kb: KbsQuery = None,
) -> Response:
    """Collect passages that answer a question, for programs that can only send GET."""
    kbs = caller.restrict(kb)
    answer = await searches.answer_async(
        "context", query, kbs=kbs, max_tokens=max_tokens, limit=limit
    )
    return json_answer(answer)
