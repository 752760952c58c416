"""Jobs. Functions of the caller's transaction."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa

from kbkit.errors import ConfigError, NotFoundError, WorkspaceError
from kbkit.models import Job, JobError, JobProgress, JobState
from kbkit.models.values import from_dict
from kbkit.stores.catalog.database import Transaction, is_list_of_texts
from kbkit.stores.catalog.workspace_schema import jobs

_ENDED = [state.value for state in JobState if state.ended]


def add(transaction: Transaction, job: Job, arguments: Mapping[str, Any]) -> None:
    transaction.execute(
        jobs.insert().values(
            id=job.id,
            kind=job.kind,
            kbs=list(job.kbs),
            owner=job.owner,
            state=job.state.value,
            arguments=dict(arguments),
            cancelled=False,
            attempts=0,
            created_at=job.created_at,
        )
    )


def get(transaction: Transaction, job_id: str) -> Job:
    row = transaction.execute(sa.select(jobs).where(jobs.c.id == job_id)).first()
    if row is None:
        raise NotFoundError(f"no job {job_id!r}: it never existed, or ended some days ago")
    return _job(row)


def arguments_of(transaction: Transaction, job_id: str) -> Mapping[str, Any]:
    query = sa.select(jobs.c.arguments).where(jobs.c.id == job_id)
    arguments: Mapping[str, Any] = transaction.execute(query).scalar_one()
    return arguments


def listed(transaction: Transaction, *, ended: bool | None = None) -> list[Job]:
    """List jobs, newest first; `ended` selects ended or unended ones."""
    query = sa.select(jobs).order_by(jobs.c.created_at.desc(), jobs.c.id)
    if ended is not None:
        has_ended = jobs.c.state.in_(_ENDED)
        query = query.where(has_ended if ended else sa.not_(has_ended))
    return [_job(row) for row in transaction.execute(query)]


def begin(transaction: Transaction, job_id: str) -> Job:
    """Mark a job as running, unless it ended."""
    transaction.execute(
        jobs.update()
        .where(jobs.c.id == job_id, sa.not_(jobs.c.state.in_(_ENDED)))
        .values(
            state=JobState.RUNNING.value, attempts=jobs.c.attempts + 1, started_at=datetime.now(UTC)
        )
    )
    return get(transaction, job_id)


def report_progress(transaction: Transaction, job_id: str, progress: JobProgress) -> None:
    transaction.execute(
        jobs.update().where(jobs.c.id == job_id).values(progress=dict(progress.to_dict()))
    )


def end(
    transaction: Transaction,
    job_id: str,
    state: JobState,
    *,
    result: Mapping[str, Any] | None = None,
    problem: JobError | None = None,
) -> None:
    """Record how a job ended, unless it ended before."""
    values: dict[str, Any] = {
        "state": state.value,
        "result": None if result is None else dict(result),
        "problem": None if problem is None else dict(problem.to_dict()),
        "ended_at": datetime.now(UTC) if state.ended else None,
    }
    transaction.execute(
        jobs.update().where(jobs.c.id == job_id, sa.not_(jobs.c.state.in_(_ENDED))).values(values)
    )


def cancel(transaction: Transaction, job_id: str) -> None:
    transaction.execute(jobs.update().where(jobs.c.id == job_id).values(cancelled=True))


def is_cancelled(transaction: Transaction, job_id: str) -> bool:
    query = sa.select(jobs.c.cancelled).where(jobs.c.id == job_id)
    return bool(transaction.execute(query).scalar_one_or_none())


def forget(transaction: Transaction, age: timedelta) -> list[str]:
    """Delete jobs that ended longer ago than `age`; return their ids."""
    old = sa.select(jobs.c.id).where(
        jobs.c.state.in_(_ENDED), jobs.c.ended_at < datetime.now(UTC) - age
    )
    job_ids = [row[0] for row in transaction.execute(old)]
    for job_id in job_ids:
        transaction.execute(jobs.delete().where(jobs.c.id == job_id))
    return job_ids


def _job(row: sa.Row[Any]) -> Job:
    try:
        if not is_list_of_texts(row.kbs) or not isinstance(row.arguments, Mapping):
            raise ValueError("of another shape")
        return Job(
            row.id,
            row.kind,
            tuple(row.kbs),
            row.owner,
            JobState(row.state),
            row.created_at,
            None if row.progress is None else from_dict(JobProgress, row.progress),
            row.result,
            None if row.problem is None else JobError(**row.problem),
            row.attempts,
            row.started_at,
            row.ended_at,
        )
    except (ValueError, TypeError, KeyError, AttributeError, ConfigError) as error:
        raise WorkspaceError(
            f"the job {row.id} cannot be read; `kbkit doctor --repair` deletes it"
        ) from error
