"""Routes whose handlers return values; the type of the result documents the response."""

import hashlib
import json
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, wraps
from inspect import iscoroutinefunction, signature
from types import NoneType
from typing import Annotated, Any, TypeVar, get_origin

from fastapi import APIRouter, Depends, Header, Request, Response
from fastapi import Body as BodyParameter
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from kbkit.client.calls import error_named
from kbkit.errors import ArgumentError, ConflictError
from kbkit.models import Job, JobError, JobState
from kbkit.models.values import did_you_mean
from kbkit.server.access import READ, Caller, JobsOf, WorkspaceOf
from kbkit.server.parameters import Options
from kbkit.server.responses import Created, answer, document_responses, error_responses
from kbkit.server.tasks import store_uploads

Handler = TypeVar("Handler", bound=Callable[..., Any])

_WAIT_SECONDS = 20.0
"""Seconds to wait for the result of a job before returning the job."""


async def _check_query(request: Request) -> None:
    route: Any = request.scope.get("route")
    if not isinstance(route, APIRoute):
        return
    names = list(dict.fromkeys(_query_names(route.dependant)))
    for name in request.query_params:
        if name not in names:
            suggestion = did_you_mean(name, names)
            raise ArgumentError(f"{request.url.path}: has no parameter {name[:80]!r}; {suggestion}")


def _query_names(dependant: Dependant) -> Iterator[str]:
    yield from (parameter.alias for parameter in dependant.query_params)
    for dependency in dependant.dependencies:
        yield from _query_names(dependency)


class Routes:
    """Routes below a path; `_response` converts what their handlers return."""

    def __init__(self, prefix: str, tag: str, *, any_query: bool = False, **options: Any) -> None:
        checks = [] if any_query else [Depends(_check_query)]
        self.prefix = prefix
        self.router = APIRouter(prefix=prefix, tags=[tag], dependencies=checks, **options)
        self.get, self.post, self.put, self.patch, self.delete = (
            partial(self._route, method) for method in ("GET", "POST", "PUT", "PATCH", "DELETE")
        )

    def _route(
        self,
        method: str,
        path: str,
        scope: Any = READ,
        *,
        status: int = 200,
        model: Any = None,
        work: Any = None,
        responses: dict[int | str, dict[str, Any]] | None = None,
        **options: Any,
    ) -> Callable[[Handler], Handler]:
        """Declare a route.

        `model` is the type of the response if the handler's annotation is another, `work` that of
        the result of a job that the handler starts.
        """

        def register(handler: Handler) -> Handler:
            hints = typing.get_type_hints(handler, include_extras=True)
            result = hints.pop("return")
            code = {NoneType: 204, Created: 201}.get(get_origin(result) or result, status)
            described = responses or document_responses(work or model or result, code)
            if work:
                described |= document_responses(Job, 202, "The job continues")
            versions = () if method == "GET" else (412,)
            self.router.add_api_route(
                path,
                _endpoint(handler, code, hints),
                methods=[method],
                status_code=code,
                dependencies=[] if scope is None else [scope],
                responses=error_responses(404, *versions, 422, 503) | described,
                response_model=None,
                **options,
            )
            return handler

        return register


def _endpoint(handler: Callable[..., Any], status: int, hints: Mapping[str, Any]) -> Any:
    if iscoroutinefunction(handler):
        return handler  # a response

    @wraps(handler)
    def endpoint(**arguments: Any) -> Response:
        return _response(handler(**arguments), status)

    declared = signature(handler)
    parameters = [
        parameter.replace(annotation=_optional(hints[name]))
        for name, parameter in declared.parameters.items()
    ]
    endpoint.__signature__ = declared.replace(  # type: ignore[attr-defined]  # FastAPI reads it
        parameters=parameters, return_annotation=Response
    )
    return endpoint


def _optional(annotation: Any) -> Any:
    if isinstance(annotation, type) and issubclass(annotation, Options):
        return Annotated[annotation, BodyParameter(default_factory=annotation)]
    return annotation


def _response(value: Any, status: int) -> Response:
    if isinstance(value, Response):
        return value
    if value is None:
        return Response(status_code=204)
    if isinstance(value, Created):
        return answer(value.value, status, {"Location": value.location})
    return answer(value, status)


def _digest(values: Any) -> str:
    text = json.dumps(values, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True)
class Worker:
    """Runs jobs for a caller, once for each idempotency key."""

    request: Request
    workspace: WorkspaceOf
    jobs: JobsOf
    caller: Caller
    idempotency_key: Annotated[
        str | None,
        Header(
            description="Any text of the caller: a repetition with the same key within a day gets "
            "the same job, and starts nothing.",
            min_length=1,
            max_length=200,
        ),
    ] = None

    def run(self, kind: str, body: Any, **more: Any) -> Response:
        """Run a job whose arguments are the fields of a request and some others; see `start`."""
        values = body.model_dump(mode="json", exclude={"wait"})
        return self.start(kind, {**values, **more}, wait=body.wait)

    def start(
        self,
        kind: str,
        arguments: Mapping[str, Any],
        *,
        wait: bool,
        files: Sequence[tuple[str, bytes]] = (),
    ) -> Response:
        """Run a job once for its idempotency key; respond with its result, or the job (202)."""
        contents = [[path, hashlib.sha256(data).hexdigest()] for path, data in files]
        digest = _digest([arguments, contents] if files else arguments)
        key, job, job_id = self.idempotency_key, None, ""
        if key is not None:
            job_id = _digest([self.caller.name, self.request.url.path, key])[:32]
            job = self.jobs.find_repeated(job_id, digest)
        headers = {} if job is None else {"Idempotency-Replayed": "true"}
        if job is None:
            values = {**arguments, "request": digest}
            if files:
                values["uploads"] = store_uploads(self.workspace, files)
            kbs = (arguments["kb"],) if "kb" in arguments else ()
            job = self.jobs.start(kind, values, owner=self.caller.name, kbs=kbs, job_id=job_id)
        if wait:
            job = self.jobs.wait(job.id, _WAIT_SECONDS)
        if job.state is JobState.FAILED:
            problem = job.problem or JobError("ServerError", "the job failed")
            raise error_named(problem.error, problem.detail)
        if job.state is JobState.CANCELLED:
            raise ConflictError(f"the job {job.id} was cancelled; its work so far is kept")
        if job.state is JobState.DONE:
            return answer(job.result, 200, headers)
        return answer(job, 202, {**headers, "Location": f"/api/jobs/{job.id}"})


Work = Annotated[Worker, Depends(Worker)]
