"""Routes for text that language models wrote about documents."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Response
from pydantic import BaseModel, Field, StrictBool

from kbkit.access import Scope
from kbkit.models import Expansion
from kbkit.rest.access import WRITE, Caller, JobsOf, WorkspaceOf, base_of
from kbkit.rest.known_query import KNOWN_QUERY
from kbkit.rest.middleware import Once
from kbkit.rest.parameters import Body, KbPath, left_out
from kbkit.rest.responses import Wait, answer, documented, documented_work, run_as_job

router = APIRouter(
    prefix="/api/knowledge/bases/{name}/expansions",
    tags=["documents"],
    dependencies=[WRITE, KNOWN_QUERY],
)


class NewExpansion(Body):
    """Text for a language model to write about documents."""

    llm: Annotated[str, Field(min_length=1, max_length=1_000)] | None = None
    """Model as in a recipe, which needs the scope admin; by default the recipe's."""
    questions: Annotated[int, Field(ge=0, le=10)] | None = None
    """Number of questions for a document; by default the recipe's, else 5."""
    estimate: StrictBool = False
    """Only estimate the requests."""
    wait: Wait = True


class DeletedExpansions(BaseModel):
    """Number of documents whose text was deleted."""

    documents: int = Field(description="Those of which a language model had written.")


@router.post("", responses=documented_work(Expansion))
def expand_documents(
    *,
    name: KbPath,
    body: Annotated[NewExpansion, left_out(NewExpansion)],
    workspace: WorkspaceOf,
    caller: Caller,
    jobs: JobsOf,
    once: Once,
) -> Response:
    """Write summaries and questions with a language model, for documents without them."""
    documents = base_of(workspace, caller, name).documents
    if body.llm is not None:
        caller.require(Scope.ADMIN)
    if body.estimate:
        return answer(documents.expand(body.llm, questions=body.questions, estimate=True))
    arguments = {"kb": name, "llm": body.llm, "questions": body.questions}
    return once(arguments, lambda: run_as_job(jobs, caller, "expand", arguments, wait=body.wait))


@router.delete("", responses=documented(DeletedExpansions, refusals=(404, 409, 503)))
def unexpand_documents(name: KbPath, workspace: WorkspaceOf, caller: Caller) -> Response:
    """Delete text that language models wrote about documents."""
    return answer({"documents": base_of(workspace, caller, name).documents.unexpand()})
