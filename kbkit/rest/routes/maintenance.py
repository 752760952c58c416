"""Routes for maintenance."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Response

from kbkit.models import Health, Run
from kbkit.rest.access import ADMIN, READ, Caller, JobsOf, WorkspaceOf
from kbkit.rest.known_query import KNOWN_QUERY
from kbkit.rest.parameters import Body, Cursor, KbsQuery, Limit, left_out, part_of
from kbkit.rest.responses import Wait, documented, documented_work, run_as_job

router = APIRouter(prefix="/api/knowledge", tags=["maintenance"], dependencies=[KNOWN_QUERY])


class Examination(Body):
    """An examination."""

    wait: Wait = True


@router.get("/runs", dependencies=[READ], responses=documented(Run, many=True, refusals=(404, 422)))
def list_runs(
    workspace: WorkspaceOf, caller: Caller, limit: Limit, kb: KbsQuery = None, cursor: Cursor = ""
) -> Response:
    """List when sources were read, with duration and outcome, the last first."""
    names = caller.restrict(kb) if kb else caller.visible(workspace)
    return part_of(workspace.runs(names), limit, cursor)


@router.post("/doctor", dependencies=[ADMIN], responses=documented_work(Health))
def examine_workspace(
    body: Annotated[Examination, left_out(Examination)], caller: Caller, jobs: JobsOf
) -> Response:
    """Check the workspace by content and list what is wrong; repairs nothing."""
    caller.require_all_kbs()
    return run_as_job(jobs, caller, "doctor", {}, wait=body.wait)
