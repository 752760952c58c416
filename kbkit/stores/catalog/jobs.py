"""State of a server: jobs, tokens and replayed answers. Functions of the caller's transaction."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import sqlalchemy as sa

from kbkit.errors import ConfigError, ConflictError, NotFoundError, WorkspaceError
from kbkit.models import Job, JobError, JobProgress, JobState, TokenInfo
from kbkit.models.values import from_dict
from kbkit.stores.catalog.database import Transaction, is_list_of_texts
from kbkit.stores.catalog.workspace_schema import jobs, tokens
from kbkit.stores.catalog.workspace_schema import replayed_answers as table

_ENDED = [state.value for state in JobState if state.ended]


def add(transaction: Transaction, job: Job, arguments: Mapping[str, Any]) -> None:
    transaction.insert_one(
        jobs,
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
    transaction.update(
        jobs,
        jobs.c.id == job_id,
        sa.not_(jobs.c.state.in_(_ENDED)),
        state=JobState.RUNNING.value,
        attempts=jobs.c.attempts + 1,
        started_at=datetime.now(UTC),
    )
    return get(transaction, job_id)


def report_progress(transaction: Transaction, job_id: str, progress: JobProgress) -> None:
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
    transaction.update(jobs, jobs.c.id == job_id, cancelled=True)


def is_cancelled(transaction: Transaction, job_id: str) -> bool:
    query = sa.select(jobs.c.cancelled).where(jobs.c.id == job_id)
    return bool(transaction.execute(query).scalar_one_or_none())


def forget(transaction: Transaction, age: timedelta) -> list[str]:
    """Delete jobs that ended longer ago than `age`; return their ids."""
    old = sa.select(jobs.c.id).where(
        jobs.c.state.in_(_ENDED), jobs.c.ended_at < datetime.now(UTC) - age
    )
    job_ids = transaction.scalars(old)
    transaction.delete(jobs, transaction.is_in(jobs.c.id, job_ids))
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


KEPT = timedelta(hours=24)


class ReplayedAnswer(NamedTuple):
    """A stored response; `digest` is of the request."""

    digest: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    media_type: str


def find_answer(transaction: Transaction, key: str) -> ReplayedAnswer | None:
    columns = [table.c[name] for name in ReplayedAnswer._fields]
    query = sa.select(*columns).where(
        table.c.key == key, table.c.created_at > datetime.now(UTC) - KEPT
    )
    row = transaction.execute(query).first()
    return None if row is None else ReplayedAnswer(*row)


def keep_answer(transaction: Transaction, key: str, answer: ReplayedAnswer) -> None:
    now = datetime.now(UTC)
    transaction.delete(table, sa.or_(table.c.key == key, table.c.created_at <= now - KEPT))
    values = {**answer._asdict(), "headers": dict(answer.headers)}
    transaction.insert_one(table, key=key, created_at=now, **values)


_SCOPES = frozenset({"read", "write", "admin"})
_DIGEST = re.compile(r"[0-9a-f]{64}")


def add_token(transaction: Transaction, info: TokenInfo, digest: str) -> None:
    if transaction.execute(sa.select(tokens.c.id).where(tokens.c.name == info.name)).first():
        raise ConflictError(
            f"a token named {info.name!r} exists; choose another name, or revoke it first"
        )
    transaction.insert_one(
        tokens,
        id=info.id,
        name=info.name,
        digest=digest,
        scope=info.scope,
        kbs=list(info.kbs),
        created_at=info.created_at,
        expires_at=info.expires_at,
    )


def find_token(transaction: Transaction, token_id: str) -> tuple[TokenInfo, str] | None:
    row = transaction.execute(sa.select(tokens).where(tokens.c.id == token_id)).first()
    return None if row is None else (_token_info(row), row.digest)


def list_tokens(transaction: Transaction) -> list[TokenInfo]:
    return [
        _token_info(row) for row in transaction.execute(sa.select(tokens).order_by(tokens.c.name))
    ]


def delete_token(transaction: Transaction, name: str) -> TokenInfo:
    # reads only some columns, so that damaged rows can be deleted, too
    query = sa.select(tokens.c.id, tokens.c.name, tokens.c.scope)
    row = transaction.execute(
        query.where(sa.or_(tokens.c.name == name, tokens.c.id == name))
    ).first()
    if row is None:
        named = ", ".join(each.name for each in transaction.execute(query.order_by(tokens.c.name)))
        raise NotFoundError(f"no token {name!r}; there {f'are {named}' if named else 'is none'}")
    try:
        stored = find_token(transaction, row.id)
    except (WorkspaceError, ValueError, TypeError):
        stored = None
    transaction.delete(tokens, tokens.c.id == row.id)
    return stored[0] if stored else TokenInfo(row.id, row.name, row.scope, (), datetime.now(UTC))


def note_uses(transaction: Transaction, used: Mapping[str, datetime]) -> None:
    for token_id, at in used.items():
        transaction.update(tokens, tokens.c.id == token_id, used_at=at)


def _token_info(row: sa.Row[Any]) -> TokenInfo:
    whole = is_list_of_texts(row.kbs) and row.scope in _SCOPES and _DIGEST.fullmatch(row.digest)
    if not whole:
        raise WorkspaceError(f"the token {row.id} cannot be read; `kbkit doctor` shows the remedy")
    return TokenInfo(
        row.id, row.name, row.scope, tuple(row.kbs), row.created_at, row.expires_at, row.used_at
    )
