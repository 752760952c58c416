"""The knowledge graph for an agent: entities, what they are related to, and who speaks of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kbkit.models import About, Entity, Relation, Step, Target
from kbkit.models.plain import pluralize
from kbkit.replies.listings import listing
from kbkit.replies.quotes import Quotes
from kbkit.replies.reply import Budget, Reply
from kbkit.retrieval.citations import LINE_TOKENS, cut
from kbkit.retrieval.quoting import one_line

_MOST_ALIASES = 5


def entities_reply(found: Iterable[Entity], *, start: int, limit: int, budget: Budget) -> Reply:
    """Entities, a line each.

    Args:
        found: Those first that most chunks name.
        start: How many were told before.
        limit: Most entities.
        budget: What the reply may take.
    """
    return _quoted_listing(
        map(_entity, found), name="entities", nothing="No entity is called so.", start=start,
        limit=limit, budget=budget,
    )  # fmt: skip


def steps_reply(found: Iterable[Step], *, start: int, limit: int, budget: Budget) -> Reply:
    """What relations lead to, a line each.

    Args:
        found: The nearest first, where the walk began left out.
        start: How many were told before.
        limit: Most of them.
        budget: What the reply may take.
    """
    return _quoted_listing(
        map(_step, found), name="neighbors", nothing="Nothing is related to it.", start=start,
        limit=limit, budget=budget,
    )  # fmt: skip


def relation_reply(relation: Relation, names: Mapping[Target, str]) -> Reply:
    """A relation that was made.

    Args:
        relation: It.
        names: What its ends are called.
    """
    quotes = Quotes()
    source, target = (_short(names.get(end, end.id)) for end in (relation.source, relation.target))
    said = f"{source} --{_short(relation.name)}--> {target}"
    return Reply(
        f"Related.\n{quotes.note}\n{quotes.value(said)}",
        {
            "note": quotes.note, "source": quotes.value(source), "relation": _short(relation.name),
            "target": quotes.value(target), "weight": relation.weight,
        },
    )  # fmt: skip


def about_reply(found: About, *, start: int, limit: int, budget: Budget) -> Reply:
    """Who speaks of a subject: statements and documents in turn with entities beside it.

    Args:
        found: It.
        start: How many lines were told before.
        limit: Most of each kind.
        budget: What the reply may take.
    """
    rows: list[tuple[str, dict[str, Any]]] = []
    for subject in found.subjects[:limit]:
        said = f"{_short(subject.name)} ({subject.type or subject.kind.value})"
        chunks = pluralize(subject.chunks, "passage")
        documents = pluralize(subject.documents, "document")
        rows.append(_row("subject", said, f"in {chunks} of {documents}"))
    for document in found.documents[:limit]:
        defines = " says what it is" if document.defines else ""
        said = f"{document.title} <{document.uri}>{defines}"
        rows.append(_row("document", said, document.description, kb=document.kb))
    for chunk in found.chunks[:limit]:
        said = f"{chunk.title} > {chunk.section}" if chunk.section else chunk.title
        rows.append(_row("statement", said, chunk.statement, kb=chunk.kb))
    for entity in found.entities[:limit]:
        rows.append(_row("beside", f"{entity.name} ({entity.type or entity.kind.value})", ""))
    return _quoted_listing(
        iter(rows), name="found", nothing="Nothing speaks of it.", start=start, limit=None,
        budget=budget,
    )  # fmt: skip


def _quoted_listing(
    rows: Iterable[tuple[str, dict[str, Any]]],
    *,
    name: str,
    nothing: str,
    start: int,
    limit: int | None,
    budget: Budget,
) -> Reply:
    """A list whose lines are all quoted."""
    quotes = Quotes()
    quoted = (
        (
            line,
            {key: quotes.value(value) if key in _QUOTED else value for key, value in each.items()},
        )
        for line, each in rows
    )
    return listing(
        quoted, name=name, head=f"{quotes.note}\n<{quotes.mark}>", foot=f"</{quotes.mark}>",
        nothing=nothing, start=start, budget=budget, more={"note": quotes.note}, limit=limit,
    )  # fmt: skip


_QUOTED = ("description", "said", "text")
"""Values that may be sentences; names have no marks, so that they can be handed back."""


def _entity(entity: Entity) -> tuple[str, dict[str, Any]]:
    about, name = _short(entity.description), _short(entity.name)
    aliases = ", ".join(_short(alias) for alias in entity.aliases[:_MOST_ALIASES])
    said = f"- {name} ({_short(entity.type)}, {pluralize(entity.chunks, 'passage')})"
    line = said + f": {about}" * bool(about) + f"; also {aliases}" * bool(aliases)
    return line, {
        "id": entity.id, "name": name, "type": _short(entity.type), "description": about,
        "aliases": aliases, "chunks": entity.chunks,
    }  # fmt: skip


def _step(step: Step) -> tuple[str, dict[str, Any]]:
    name = _short(step.name)
    relation = _short(step.relation.name) if step.relation else ""
    arrow = f"--{relation}-->" if step.forward else f"<--{relation}--"
    return f"{'  ' * (step.depth - 1)}- {arrow} {name} ({_short(step.type)})", {
        "id": step.target.id, "kind": step.target.kind.value, "name": name,
        "type": _short(step.type), "relation": relation, "forward": step.forward,
        "depth": step.depth,
    }  # fmt: skip


def _row(kind: str, said: str, text: str, kb: str = "") -> tuple[str, dict[str, Any]]:
    said, text = cut(one_line(said), 2 * LINE_TOKENS), cut(one_line(text), 2 * LINE_TOKENS)
    line = f"- {kind}: {said}" + f": {text}" * bool(text) + f" [{kb}]" * bool(kb)
    return line, {"kind": kind, "said": said, "text": text, "kb": kb}


def _short(text: str) -> str:
    return cut(one_line(text), LINE_TOKENS)
