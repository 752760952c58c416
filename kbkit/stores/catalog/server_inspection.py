"""Whether what the catalog keeps for servers can be right: jobs and tokens.

Functions of the caller's transaction; each gives what is wrong in plain words.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

import sqlalchemy as sa

from kbkit.models import JobError, JobState
from kbkit.models.jobs import KINDS
from kbkit.stores.catalog import jobs as job_table
from kbkit.stores.catalog import knowledge_bases, trash
from kbkit.stores.catalog import tokens as token_table
from kbkit.stores.catalog.built_in import BUILT_IN
from kbkit.stores.catalog.database import Transaction
from kbkit.stores.catalog.server_schema import jobs, tokens


class OddRow(NamedTuple):
    """A row of which something is wrong.

    Attributes:
        id: Of the row.
        problem: What is wrong.
        is_unreadable: Whether nobody can read it.
    """

    id: str
    problem: str
    is_unreadable: bool = False


def known_names(transaction: Transaction) -> set[str]:
    """Names that jobs and tokens may have of knowledge bases: those here and in the trash."""
    deleted = trash.knowledge_bases_in_trash(transaction)
    return {*knowledge_bases.names(transaction), *(each.name for each in deleted), *BUILT_IN}


def odd_jobs(transaction: Transaction, names: Collection[str]) -> Iterator[OddRow]:
    """Jobs that cannot be read, and such as wait and that nobody can do.

    Args:
        transaction: One that reads.
        names: See `known_names`.
    """
    for id_ in transaction.execute(sa.select(jobs.c.id).order_by(jobs.c.id)).scalars().all():
        try:
            job = job_table.get(transaction, id_)
        except Exception:
            yield OddRow(id_, f"the job {id_} cannot be read", True)
            continue
        if job.state.ended:
            continue
        gone = [name for name in job.kbs if name not in names]
        if gone:
            yield OddRow(id_, f"the job {id_} is for the knowledge base {gone[0]}, which is gone")
        elif job.kind not in KINDS:
            yield OddRow(id_, f"the job {id_} is of the kind {job.kind[:40]!r}, which nobody does")


def end_jobs(transaction: Transaction, odd: Collection[OddRow]) -> None:
    """Have jobs be over that nobody can do; such as cannot be read are forgotten."""
    for row in odd:
        if row.is_unreadable:
            transaction.execute(jobs.delete().where(jobs.c.id == row.id))
        else:
            problem = JobError("ImpossibleError", row.problem)
            job_table.end(transaction, row.id, JobState.FAILED, problem=problem)


def odd_tokens(transaction: Transaction, names: Collection[str]) -> Iterator[OddRow]:
    """Tokens that cannot be read, and such as are for knowledge bases that are gone.

    Args:
        transaction: One that reads.
        names: See `known_names`.
    """
    for id_ in transaction.execute(sa.select(tokens.c.id).order_by(tokens.c.name)).scalars().all():
        try:
            found = token_table.find(transaction, id_)
        except Exception:
            yield OddRow(id_, f"the token with the id {id_} cannot be read", True)
            continue
        if found is None:
            continue
        info = found[0]
        for name in info.kbs:
            if name not in names:
                problem = (
                    f"the token {info.name!r} is for the knowledge base {name}, which is gone: "
                    "another one of that name would be open to it"
                )
                yield OddRow(id_, problem)
