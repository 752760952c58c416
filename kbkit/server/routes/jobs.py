"""Routes for jobs, and for runs and checks of a workspace."""

import json
import time
from collections.abc import AsyncIterator
from functools import partial
from typing import Annotated

import anyio
from anyio import to_thread
from fastapi import Path, Query, Request, Response
from fastapi.responses import StreamingResponse

from kbkit.models import Health, Job, Run
from kbkit.server.access import ADMIN, WRITE, Caller, JobsOf, WorkspaceOf
from kbkit.server.jobs import Jobs
from kbkit.server.parameters import KbsQuery, Options, PagingOf
from kbkit.server.responses import Paged, Wait
from kbkit.server.routing import Routes, Work
from kbkit.stores.catalog.jobs import unknown_job

routes = Routes("/api/jobs", "jobs")
maintenance = Routes("/api/knowledge", "maintenance")

_POLL_SECONDS = 0.2
_HEARTBEAT_SECONDS = 1.0
_EVENT = {
    "type": "object",
    "properties": {
        "event": {"const": "job"},
        "data": {"type": "string", "contentMediaType": "application/json"},
    },
    "required": ["event", "data"],
}

JobId = Annotated[str, Path(description="Id of the job.", max_length=64)]


@routes.get("")
def list_jobs(jobs: JobsOf, caller: Caller, paging: PagingOf) -> Paged[Job]:
    """List jobs, newest first."""
    return paging.of([job for job in jobs.list() if _may_see(caller, job)])


@routes.get("/{job_id}")
def read_job(
    job_id: JobId,
    jobs: JobsOf,
    caller: Caller,
    wait: Annotated[float, Query(ge=0, le=20, description="Seconds to wait for its end.")] = 0,
) -> Job:
    """Return the progress and outcome of a job."""
    job = _visible_job(jobs, caller, job_id)
    return jobs.wait(job_id, wait) if wait else job


@routes.delete("/{job_id}", WRITE)
def cancel_job(job_id: JobId, jobs: JobsOf, caller: Caller) -> Job:
    """Cancel a job; its work so far stays."""
    _visible_job(jobs, caller, job_id)
    return jobs.cancel(job_id)


@routes.get(
    "/{job_id}/events",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": (
                "The job as server-sent events named `job`, one for each change; the last has "
                "the outcome."
            ),
            "content": {"text/event-stream": {"schema": _EVENT}},
        }
    },
)
async def follow_job(job_id: JobId, jobs: JobsOf, caller: Caller, request: Request) -> Response:
    """Follow a job to its end, as server-sent events."""
    fetch = partial(to_thread.run_sync, partial(_visible_job, jobs, caller, job_id))
    first = await fetch()  # a missing job is a 404, not a stream

    async def events() -> AsyncIterator[str]:
        job, last_text, sent_at = first, "", time.monotonic()
        while True:
            text = json.dumps(job.to_dict(), separators=(",", ":"))
            if text != last_text:
                last_text, sent_at = text, time.monotonic()
                yield f"event: job\ndata: {text}\n\n"
            elif time.monotonic() - sent_at > _HEARTBEAT_SECONDS:
                sent_at = time.monotonic()
                yield ": at work\n\n"
            if job.state.ended or request.app.state.closing.is_set():
                return
            await anyio.sleep(_POLL_SECONDS)
            job = await fetch()

    return StreamingResponse(
        events(), media_type="text/event-stream", headers={"Cache-Control": "no-store"}
    )


def _may_see(caller: Caller, job: Job) -> bool:
    return not caller.kbs or (bool(job.kbs) and set(job.kbs) <= set(caller.kbs))


def _visible_job(jobs: Jobs, caller: Caller, job_id: str) -> Job:
    job = jobs.get(job_id)
    if not _may_see(caller, job):
        raise unknown_job(job_id)  # the same as for one that never existed
    return job


class Examination(Options):
    """An examination."""

    wait: Wait = True


@maintenance.get("/runs")
def list_runs(
    workspace: WorkspaceOf, caller: Caller, paging: PagingOf, kb: KbsQuery = None
) -> Paged[Run]:
    """List when sources were read, with duration and outcome, newest first."""
    names = caller.restrict(kb) if kb else caller.visible(workspace)
    return paging.of(workspace.runs(names))


@maintenance.post("/doctor", ADMIN, work=Health)
def examine_workspace(body: Examination, caller: Caller, work: Work) -> Response:
    """Check the content of the workspace and list problems; repairs nothing."""
    caller.require_all_kbs()
    return work.run("doctor", body)
