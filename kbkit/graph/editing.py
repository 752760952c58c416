"""Edit the knowledge graph by hand."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from kbkit.errors import ConfigError, ImpossibleError, NotFoundError
from kbkit.graph.extraction import entity_name
from kbkit.models import Entity, GraphEdit, Relation, Target, TargetKind
from kbkit.runtime import validation
from kbkit.stores.catalog import entities, graph_edits, reading, relations
from kbkit.stores.catalog.database import Transaction
from kbkit.stores.catalog.graph_edits import record_edit
from kbkit.stores.catalog.subjects import SubjectName
from kbkit.stores.stores import Stores

_MAX_LENGTH = 500
"""Maximum characters of a name."""

_PREFIXES = frozenset(TargetKind)

Named = str | Target | Entity
"""An entity or target: its id, its name, or the object."""


@validation.explain_calls
class Editing:
    """Create, change, merge and delete entities and relations by hand; rebuilds keep the edits.

    To detect concurrent edits, pass the object that you read: if the item changed since, the method
    raises `ConflictError`.
    """

    def __init__(self, stores: Stores, rater: str) -> None:
        self._database = stores.database
        self._rater = rater

    def create(
        self,
        name: str,
        *,
        type: str = "name",
        description: str = "",
        properties: Mapping[str, Any] | None = None,
        aliases: Sequence[str] = (),
        by: str = "",
    ) -> Entity:
        """Create an entity by hand; restores a deleted one.

        Args:
            name: Name.
            type: One of `kbkit.models.EntityType`, or your own word.
            description: One sentence.
            properties: Further properties as JSON values.
            aliases: Other names.
            by: Name of the editor; by default ``KBKIT_RATER`` or the login name.

        Raises:
            ConfigError: A value is invalid.
            ConflictError: A name belongs to another entity.
        """
        made_by = by or self._rater
        subject = _subject(name)
        alias_names = _subjects(aliases)
        values = _check_values(type, description, {} if properties is None else properties)
        with self._database.write() as transaction:
            names = entities.group(transaction, [alias.id for alias in alias_names])
            summary = f"created {subject.name!r}"
            with record_edit(transaction, summary, made_by, entity=subject.id, names=names):
                return entities.create(transaction, subject, values, alias_names, made_by=made_by)

    def update(
        self,
        entity: str | Entity,
        *,
        name: str | None = None,
        type: str | None = None,
        description: str | None = None,
        properties: Mapping[str, Any] | None = None,
        aliases: Sequence[str] | None = None,
        by: str = "",
    ) -> Entity:
        """Change an entity; omitted values stay.

        Args:
            entity: The entity as `entity` returned it, to detect concurrent edits; or its id or
                name.
            name: New name; the old one becomes an alias.
            type: New type.
            description: New description.
            properties: Replace all properties.
            aliases: Replace all aliases.
            by: Name of the editor; by default ``KBKIT_RATER`` or the login name.

        Raises:
            ConfigError: A value is invalid.
            NotFoundError: The entity does not exist.
            ConflictError: It changed meanwhile, or a name belongs to another entity.
        """
        made_by = by or self._rater
        alias_names = None if aliases is None else _subjects(aliases)
        new_name = None if name is None else _subject(name)
        values = _check_values(type, description, properties)
        with self._database.write() as transaction:
            entity_id = self._entity_id(transaction, entity)
            new_ids = [subject.id for subject in (*(alias_names or ()), new_name) if subject]
            names = entities.group(transaction, [entity_id, *new_ids])
            summary = f"changed {entities.get(transaction, entity_id).name!r}"
            with record_edit(transaction, summary, made_by, entity=entity_id, names=names):
                return entities.update(
                    transaction,
                    entity_id,
                    values,
                    name=new_name,
                    aliases=alias_names,
                    expected=entity if isinstance(entity, Entity) else None,
                    made_by=made_by,
                )

    def delete(self, entity: str | Entity | Relation, *, by: str = "") -> None:
        """Delete an entity or a relation; only `create` or `relate` restore it, not rebuilds.

        Args:
            entity: The entity or relation as you read it; or the id or name of an entity.
            by: Name of the editor; by default ``KBKIT_RATER`` or the login name.

        Raises:
            NotFoundError: It does not exist.
            ConflictError: It changed meanwhile.
        """
        by = by or self._rater
        with self._database.write() as transaction:
            if isinstance(entity, Relation):
                summary = f"deleted the relation {_description(transaction, entity)}"
                ends = relations.ends(transaction, entity.id)
                with record_edit(transaction, summary, by, relation=ends):
                    relations.delete(transaction, entity, made_by=by)
            else:
                entity_id = self._entity_id(transaction, entity)
                expected = entity if isinstance(entity, Entity) else None
                summary = f"deleted {entities.get(transaction, entity_id).name!r}"
                with record_edit(transaction, summary, by, entity=entity_id):
                    entities.delete(transaction, entity_id, seen=expected, made_by=by)

    def relate(
        self,
        source: Named,
        name: str,
        target: Named,
        *,
        weight: float = 1.0,
        note: str = "",
        by: str = "",
    ) -> Relation:
        """Create a relation by hand, or change one of your own or of documents.

        Args:
            source: Start: an entity by id or name, a chunk or document by id, a document by URI, a
                file or entry with the prefix ``file:`` or ``entry:``, or a `Target`.
            name: Name such as ``depends_on``.
            target: End, in the same forms.
            weight: Strength, above 0 to 1.
            note: Note for readers.
            by: Name of the editor; by default ``KBKIT_RATER`` or the login name.

        Raises:
            ConfigError: A value is invalid, or both ends are the same.
            NotFoundError: An end does not exist.
            ConflictError: Another person created it, with other values; delete it first.
        """
        if not validation.is_share(weight):
            raise ConfigError(f"weight={weight!r}: give a number above 0, at most 1")
        made_by = by or self._rater
        name = _check_word("name", name).lower()
        note = validation.check_text("note", note)
        with self._database.write() as transaction:
            start, end = self._target(transaction, source), self._target(transaction, target)
            if start == end:
                raise ImpossibleError(f"{source}: cannot be related to itself")
            summary = f"related {_description(transaction, Relation(0, start, name, end, weight))}"
            ends = (start.kind.value, start.id, name, end.kind.value, end.id)
            with record_edit(transaction, summary, made_by, relation=ends):
                return relations.relate(
                    transaction, ends, weight=float(weight), note=note, made_by=made_by
                )

    def merge(self, keep: str | Entity, other: str | Entity, *, by: str = "") -> Entity:
        """Make the names of `other` aliases of `keep`; `undo` reverts it.

        Raises:
            NotFoundError: One of them does not exist.
            ConflictError: They are merged already.
        """
        return self._decide(keep, other, by, applied=True)

    def refuse(self, keep: str | Entity, other: str | Entity, *, by: str = "") -> None:
        """Record that two entities differ, so that `suggestions` leaves them out.

        Raises:
            NotFoundError: One of them does not exist.
            ConflictError: They are merged already.
        """
        self._decide(keep, other, by, applied=False)

    def _decide(self, keep: str | Entity, other: str | Entity, by: str, *, applied: bool) -> Entity:
        by = by or self._rater
        summary = "merged {1!r} into {0!r}" if applied else "refused to merge {1!r} and {0!r}"
        with self._database.write() as transaction:
            pair = self._entity_id(transaction, keep), self._entity_id(transaction, other)
            names = _labels(transaction, *(Target(TargetKind.ENTITY, id_) for id_ in pair))
            with record_edit(transaction, summary.format(*names), by, pair=pair):
                graph_edits.decide(transaction, *pair, applied=applied, made_by=by)
            return entities.get(transaction, pair[0])

    def edits(self, *, by: str | None = None, limit: int = 20) -> list[GraphEdit]:
        """List changes that `undo` can revert, the last first; the last 1,000 are kept.

        Raises:
            ConfigError: The limit is not positive.
        """
        validation.check_integer("limit", limit, 1)
        return self._database.look_up(graph_edits.list_edits, made_by=by, limit=limit)

    def undo(self, edit: GraphEdit | int | None = None, *, by: str = "") -> GraphEdit:
        """Revert a change of the graph in one step.

        Args:
            edit: The edit or its number; by default the last one of the editor.
            by: Name of the editor; by default ``KBKIT_RATER`` or the login name.

        Raises:
            NotFoundError: There is nothing to revert.
            ConflictError: The same item was changed again since.
        """
        number = edit.id if isinstance(edit, GraphEdit) else edit
        if number is not None:
            validation.check_integer("edit", number, 1)
        return self._database.commit(graph_edits.undo, by or self._rater, number)

    def _entity_id(self, transaction: Transaction, entity: str | Entity) -> str:
        name = _id_or_name(entity)
        entity_id = entities.find(transaction, entity_name(name))
        if entity_id is None:
            similar = entities.list_entities(transaction, like=entity_name(name).name, limit=3)
            names = ", ".join(repr(match.name) for match in similar)
            raise NotFoundError(
                f"no entity with id or name {name!r}; "
                + (f"did you mean {names}?" if names else "list the entities to see all")
            )
        return entity_id

    def _target(self, transaction: Transaction, target: Named) -> Target:
        if isinstance(target, Target):
            if target.kind is TargetKind.ENTITY:
                return Target(target.kind, self._entity_id(transaction, target.id))
            if target.kind is TargetKind.ENTRY:
                id_ = reading.find_entry(transaction, target.id)
                target = Target(target.kind, id_ or target.id)
            if target not in relations.present(transaction, [target]):
                raise NotFoundError(f"no {target.kind.value} with id {target.id!r}")
            return target
        name = _id_or_name(target)
        if (entity := entities.find(transaction, entity_name(name))) is not None:
            return Target(TargetKind.ENTITY, entity)
        if match := relations.find_target(transaction, name):
            return match
        kind, _, id_ = name.partition(":")
        if id_ and kind in _PREFIXES:
            return self._target(transaction, Target(TargetKind(kind), id_))
        return Target(TargetKind.ENTITY, self._entity_id(transaction, name))  # raises an error


def _labels(transaction: Transaction, *targets: Target) -> list[str]:
    labels = relations.labels(transaction, targets)
    return [labels[target][0] for target in targets]


def _description(transaction: Transaction, relation: Relation) -> str:
    source, target = _labels(transaction, relation.source, relation.target)
    return f"{source!r} {relation.name} {target!r}"


def _id_or_name(entity: str | Entity) -> str:
    return entity.id if isinstance(entity, Entity) else validation.check_text("entity", entity)


def _subject(name: str) -> SubjectName:
    subject = entity_name(name)
    if not subject.key or len(subject.name) > _MAX_LENGTH:
        raise ImpossibleError(f"name={name!r}: give a name of 1 to {_MAX_LENGTH} characters")
    return subject


def _check_values(
    type: str | None, description: str | None, properties: Mapping[str, Any] | None
) -> dict[str, Any]:
    values: dict[str, Any] = {}
    if type is not None:
        values["type"] = _check_word("type", type)
    if description is not None:
        values["description"] = validation.check_text("description", description)
    if properties is not None:
        values["properties"] = validation.check_properties(properties)
    return values


def _check_word(name: str, value: str) -> str:
    word = re.sub(r"[\s-]+", "_", validation.check_text(name, value).strip())
    if not re.fullmatch(r"\w{1,80}", word):
        raise ConfigError(f"{name}={value!r}: give a word, such as depends_on")
    return word


def _subjects(aliases: Sequence[str]) -> list[SubjectName]:
    if isinstance(aliases, str) or not isinstance(aliases, Sequence):
        raise ConfigError(f"aliases={aliases!r}: give a list of texts")
    return [_subject(alias) for alias in aliases]
