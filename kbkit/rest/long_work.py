"""Work that may take long: answered when it is done, or by a job that does it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import Response
from pydantic import Field, StrictBool

from kbkit import errors
from kbkit.access import Caller
from kbkit.errors import ConflictError, KbkitError, ServerError
from kbkit.jobs import Jobs
from kbkit.models import Job, JobState
from kbkit.rest.responses import answer, documented

_WAIT_SECONDS = 20.0
"""Then a job is answered, and not what comes of it."""

Wait = Annotated[
    StrictBool,
    Field(description="Whether to be answered when all is done (for some seconds), or at once."),
]
"""Field: whether somebody waits."""


def told_when_done(
    jobs: Jobs, caller: Caller, kind: str, arguments: Mapping[str, Any], *, wait: bool
) -> Response:
    """Have a job do something; the answer is what came of it, or the job (202).

    Args:
        jobs: Do it.
        caller: Who asks.
        kind: Of the job.
        arguments: Of the job; ``kb`` is the knowledge base that it works at, ``kbs`` those, else
            it is all.
        wait: Whether to wait for its end some seconds.

    Raises:
        ConflictError: Somebody cancelled it meanwhile.
        KbkitError: It failed so.
    """
    kbs = (arguments["kb"],) if "kb" in arguments else tuple(arguments.get("kbs") or ())
    job = jobs.start(kind, arguments, owner=caller.name, kbs=kbs)
    if wait:
        job = jobs.wait(job.id, _WAIT_SECONDS)
    if job.state is JobState.FAILED:
        raise _error_of(job)
    if job.state is JobState.CANCELLED:
        raise ConflictError(f"the job {job.id} was cancelled; what it had done is kept")
    if job.state is JobState.DONE:
        return answer(job.result)
    return answer(job, 202, headers={"Location": f"/api/jobs/{job.id}"})


def _error_of(job: Job) -> KbkitError:
    """The error that a job came to, whatever its class wants to be made of."""
    known: Any = getattr(errors, job.problem.error, None) if job.problem else None
    kind = known if isinstance(known, type) and issubclass(known, KbkitError) else ServerError
    error: KbkitError = kind.__new__(kind)
    Exception.__init__(error, job.problem.detail if job.problem else "the job failed")
    return error


def documented_work(kind: Any) -> dict[int | str, dict[str, Any]]:
    """What such a route answers, for the OpenAPI document.

    Args:
        kind: Class of what comes of the work.
    """
    done = documented(
        kind, refusals=(404, 409, 422, 501, 503), description="It is done, and this came of it"
    )
    return done | documented(Job, 202, description="It is not done yet: a job does it")
