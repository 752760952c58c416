"""Jobs and tokens of a server."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa

from kbkit.errors import ConflictError, NotFoundError, ReusedKeyError, WorkspaceError
from kbkit.models import Job, JobError, JobState, Progress, TokenInfo
from kbkit.models.server import Scope
from kbkit.models.values import from_dict
from kbkit.stores.catalog.database import DAMAGED, Transaction
from kbkit.stores.catalog.workspace_schema import jobs, tokens

_ENDED = [state.value for state in JobState if state.ended]
_UNFINISHED = jobs.c.state.not_in(_ENDED)


def add(transaction: Transaction, job: Job, arguments: Mapping[str, Any]) -> None:
    if find_repeated(transaction, job.id, arguments.get("request", "")) is not None:
        raise ConflictError("another request with the same Idempotency-Key started at this moment")
    transaction.delete(jobs, jobs.c.id == job.id)  # it failed, or its key has expired
    values = {name: getattr(job, name) for name in ("id", "kind", "owner", "created_at")}
    values |= {"state": job.state.value, "kbs": list(job.kbs), "arguments": dict(arguments)}
    transaction.insert_one(jobs, cancelled=False, attempts=0, **values)


KEPT = timedelta(hours=24)


def find_repeated(transaction: Transaction, job_id: str, request: str) -> Job | None:
    """Return the job of an idempotency key, unless it failed; ``request`` is a digest."""
    failed = (JobState.FAILED.value, JobState.CANCELLED.value)
    counts = (jobs.c.created_at > datetime.now(UTC) - KEPT) | _UNFINISHED
    row = transaction.first([jobs], jobs.c.id == job_id, jobs.c.state.not_in(failed), counts)
    if row is None:
        return None
    if row.arguments.get("request") != request:
        raise ReusedKeyError(
            "Idempotency-Key: was used for another request within the last day; use a new one"
        )
    return _job(row)


def get(transaction: Transaction, job_id: str) -> Job:
    row = transaction.execute(sa.select(jobs).where(jobs.c.id == job_id)).first()
    if row is None:
        raise unknown_job(job_id)
    return _job(row)


def unknown_job(job_id: str) -> NotFoundError:
    return NotFoundError(f"no job {job_id!r}: it never existed, or ended some days ago")


def arguments_of(transaction: Transaction, job_id: str) -> Mapping[str, Any]:
    query = sa.select(jobs.c.arguments).where(jobs.c.id == job_id)
    return transaction.execute(query).scalar_one()


def list_jobs(transaction: Transaction, *, ended: bool | None = None) -> list[Job]:
    """List jobs, newest first; `ended` selects ended or unfinished ones."""
    query = sa.select(jobs).order_by(jobs.c.created_at.desc(), jobs.c.id)
    if ended is not None:
        query = query.where(~_UNFINISHED if ended else _UNFINISHED)
    return [_job(row) for row in transaction.execute(query)]


def begin(transaction: Transaction, job_id: str) -> Job:
    """Mark a job as running, unless it ended."""
    values = {"state": JobState.RUNNING.value, "attempts": jobs.c.attempts + 1}
    of_job = jobs.c.id == job_id, _UNFINISHED
    transaction.update(jobs, *of_job, started_at=datetime.now(UTC), **values)
    return get(transaction, job_id)


def report_progress(transaction: Transaction, job_id: str, progress: Progress) -> None:
    transaction.update(jobs, jobs.c.id == job_id, progress=dict(progress.to_dict()))


def end(
    transaction: Transaction,
    job_id: str,
    state: JobState,
    *,
    result: Mapping[str, Any] | None = None,
    problem: JobError | None = None,
) -> None:
    """Record how a job ended, unless it ended before."""
    transaction.update(
        jobs,
        jobs.c.id == job_id,
        _UNFINISHED,
        state=state.value,
        result=None if result is None else dict(result),
        problem=None if problem is None else dict(problem.to_dict()),
        ended_at=datetime.now(UTC) if state.ended else None,
    )


def cancel(transaction: Transaction, job_id: str) -> None:
    transaction.update(jobs, jobs.c.id == job_id, cancelled=True)


def is_cancelled(transaction: Transaction, job_id: str) -> bool:
    query = sa.select(jobs.c.cancelled).where(jobs.c.id == job_id)
    return bool(transaction.execute(query).scalar_one_or_none())


def forget(transaction: Transaction, age: timedelta) -> list[str]:
    """Delete jobs that ended longer ago than `age`; return their ids."""
    expired = sa.select(jobs.c.id).where(
        jobs.c.state.in_(_ENDED), jobs.c.ended_at < datetime.now(UTC) - age
    )
    job_ids = transaction.scalars(expired)
    transaction.delete(jobs, transaction.is_in(jobs.c.id, job_ids))
    return job_ids


def _job(row: sa.Row[Any]) -> Job:
    try:
        return from_dict(Job, dict(row._mapping))
    except ValueError as error:
        raise WorkspaceError(f"the job {row.id} cannot be read; {DAMAGED}") from error


_DIGEST = re.compile(r"[0-9a-f]{64}")


def add_token(transaction: Transaction, info: TokenInfo, digest: str) -> None:
    if transaction.execute(sa.select(tokens.c.id).where(tokens.c.name == info.name)).first():
        raise ConflictError(
            f"a token named {info.name!r} exists; choose another name, or revoke it first"
        )
    shown = ("id", "name", "scope", "created_at", "expires_at")
    values = {name: getattr(info, name) for name in shown}
    transaction.insert_one(tokens, digest=digest, kbs=list(info.kbs), **values)


def find_token(transaction: Transaction, token_id: str) -> tuple[TokenInfo, str] | None:
    row = transaction.execute(sa.select(tokens).where(tokens.c.id == token_id)).first()
    return None if row is None else (_token_info(row), row.digest)


def list_tokens(transaction: Transaction) -> list[TokenInfo]:
    rows = transaction.execute(sa.select(tokens).order_by(tokens.c.name))
    return [_token_info(row) for row in rows]


def delete_token(transaction: Transaction, name: str) -> TokenInfo:
    existing = list_tokens(transaction)
    for token in existing:
        if name in (token.name, token.id):
            transaction.delete(tokens, tokens.c.id == token.id)
            return token
    names = ", ".join(token.name for token in existing)
    raise NotFoundError(f"no token {name!r}; {f'there are {names}' if names else 'none exist'}")


def note_uses(transaction: Transaction, used: Mapping[str, datetime]) -> None:
    for token_id, at in used.items():
        transaction.update(tokens, tokens.c.id == token_id, used_at=at)


def _token_info(row: sa.Row[Any]) -> TokenInfo:
    if row.scope not in tuple(Scope) or not _DIGEST.fullmatch(row.digest):
        raise WorkspaceError(f"the token {row.id} cannot be read; {DAMAGED}")
    return from_dict(TokenInfo, dict(row._mapping))
