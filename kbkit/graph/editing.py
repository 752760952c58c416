"""What people change in the knowledge graph by hand."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from kbkit.arguments import explained
from kbkit.errors import ConfigError, NotFoundError
from kbkit.graph.keys import named
from kbkit.models import Entity, Relation, Target, TargetKind
from kbkit.stores.catalog import entities, merges, reading, relations
from kbkit.stores.catalog.database import Transaction
from kbkit.stores.catalog.subjects import SubjectName
from kbkit.stores.stores import Stores
from kbkit.validation import check_text, is_share

_LONGEST = 500
"""Characters of a name."""

Named = str | Target | Entity
"""What somebody names an entity or another target by: its id, its name, or itself."""


@explained
class Editing:
    """Entities and relations, made, changed, merged and deleted by hand; every rebuild keeps that.

    Whoever changes something that others may change too hands over the state that was seen, and
    gets a `ConflictError` if it is another one now.

    Args:
        stores: Of the workspace.
        rater: Who changes things, unless another name is given.
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
        """Make an entity by hand; one that was deleted comes back.

        Args:
            name: What it is called.
            type: What it is: one of `kbkit.models.EntityType`, or your own word.
            description: What it is, in a sentence.
            properties: What else is known of it, JSON values.
            aliases: Its other names.
            by: Who makes it; by default ``KBKIT_RATER`` or the login name.

        Raises:
            ConfigError: A value is wrong.
            ConflictError: A name is one of an entity that is there.
        """
        with self._database.write() as transaction:
            return entities.create(
                transaction,
                _named(name),
                type=_word("type", type),
                description=check_text("description", description),
                properties={} if properties is None else _json(properties),
                aliases=[_named(each) for each in _several("aliases", aliases)],
                made_by=by or self._rater,
            )

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
        """Change what is said of an entity; what is left out stays.

        Args:
            entity: The entity, as `entity` gave it: then nobody else may have changed it since. Or
                its id or name: then only what is given here is changed, whatever others did.
            name: What it is to be called; its old name stays another one of it.
            type: What it is.
            description: What it is, in a sentence.
            properties: What else is known of it, in place of what was.
            aliases: Its other names, in place of those that it has.
            by: Who changes it; by default ``KBKIT_RATER`` or the login name.

        Raises:
            ConfigError: A value is wrong.
            NotFoundError: There is no such entity.
            ConflictError: Somebody else changed it meanwhile, or a name is one of another entity.
        """
        with self._database.write() as transaction:
            found = self._entity_id(transaction, entity)
            return entities.update(
                transaction,
                found,
                named=None if name is None else _named(name),
                type=None if type is None else _word("type", type),
                description=None if description is None else check_text("description", description),
                properties=None if properties is None else _json(properties),
                aliases=None
                if aliases is None
                else [_named(each) for each in _several("aliases", aliases)],
                seen=entity if isinstance(entity, Entity) else None,
                made_by=by or self._rater,
            )

    def delete(self, entity: str | Entity | Relation, *, by: str = "") -> None:
        """Delete an entity or a relation for good; `create` and `relate` bring it back.

        Chunks that name the entity stay as they are. No rebuild of the graph brings it back.

        Args:
            entity: The entity or relation, as you saw it; or the id or name of an entity.
            by: Who deletes it; by default ``KBKIT_RATER`` or the login name.

        Raises:
            NotFoundError: It is not there.
            ConflictError: Somebody else changed it meanwhile.
        """
        by = by or self._rater
        with self._database.write() as transaction:
            if isinstance(entity, Relation):
                relations.delete(transaction, entity, made_by=by)
            else:
                found = self._entity_id(transaction, entity)
                seen = entity if isinstance(entity, Entity) else None
                entities.delete(transaction, found, seen=seen, made_by=by)

    def relate(
        self,
        source: Named,
        name: str,
        target: Named,
        *,
        weight: float = 1.0,
        note: str = "",
        by: str = "",
        expected: datetime | None = None,
    ) -> Relation:
        """Make a relation between two things by hand, or change one.

        Args:
            source: Where it begins: an entity by its id or name, a chunk or document by its id, a
                document by its URI, or a `Target` of any kind.
            name: What it says of the two, as ``depends_on``.
            target: Where it ends, likewise.
            weight: How strong it is, above 0 to 1.
            note: Anything else to say.
            by: Who makes it; by default ``KBKIT_RATER`` or the login name.
            expected: The ``seen_at`` of the relation that you saw, in order to change it.

        Raises:
            ConfigError: A value is wrong, or both ends are the same.
            NotFoundError: An end is not there.
            ConflictError: A person made it already and said something else.
        """
        if not is_share(weight):
            raise ConfigError(f"weight={weight!r}: give a number above 0, at most 1")
        with self._database.write() as transaction:
            ends = self._target(transaction, source), self._target(transaction, target)
            if ends[0] == ends[1]:
                raise ConfigError(f"{source}: cannot be related to itself")
            return relations.relate(
                transaction,
                ends[0],
                _word("name", name).lower(),
                ends[1],
                weight=float(weight),
                note=check_text("note", note),
                made_by=by or self._rater,
                expected=expected,
            )

    def merge(self, keep: str | Entity, other: str | Entity, *, by: str = "") -> Entity:
        """Make an entity another name of a second one; `undo` takes it back in one step.

        Args:
            keep: The one that stays.
            other: The one that becomes another name of it, with all its names.
            by: Who decides; by default ``KBKIT_RATER`` or the login name.

        Raises:
            NotFoundError: One of them is not there.
            ConflictError: They are one already.
        """
        with self._database.write() as transaction:
            pair = self._entity_id(transaction, keep), self._entity_id(transaction, other)
            merges.merge(transaction, *pair, made_by=by or self._rater)
            return entities.get(transaction, pair[0])

    def refuse(self, keep: str | Entity, other: str | Entity, *, by: str = "") -> None:
        """Note that two entities are not one, so that `suggestions` leaves them out from now on.

        Raises:
            NotFoundError: One of them is not there.
            ConflictError: They are one already.
        """
        with self._database.write() as transaction:
            pair = self._entity_id(transaction, keep), self._entity_id(transaction, other)
            merges.refuse(transaction, *pair, made_by=by or self._rater)

    def undo(self, keep: str | Entity | None = None, other: str | Entity | None = None) -> str:
        """Take back a merge or a refusal, by default the last one.

        Args:
            keep: The one that stayed.
            other: The one that was merged into it, by its name or id.

        Returns:
            What was taken back, in words.

        Raises:
            ConfigError: Only one of the two is given.
            NotFoundError: Nothing was decided.
            ConflictError: What was kept has been merged into another entity since.
        """
        if (keep is None) != (other is None):
            raise ConfigError("undo(): name both entities, or none for the last decision")
        with self._database.write() as transaction:
            pair = None
            if keep is not None and other is not None:
                pair = (_own_id(keep), _own_id(other))
                if not merges.is_decided(transaction, pair):
                    pair = (named(str(keep)).id, named(str(other)).id)
            undone = merges.undo(transaction, pair)
            if undone is None:
                raise NotFoundError("nothing was merged or refused that could be taken back")
            kept, merged, applied = undone
            labels = relations.labels(
                transaction, [Target(TargetKind.ENTITY, each) for each in (kept, merged)]
            )
            first, second = (label for label, _ in labels.values())
        if applied:
            return f"{second!r} is an entity of its own again, no longer another name of {first!r}"
        return f"{first!r} and {second!r} may be one again"

    def _entity_id(self, transaction: Transaction, entity: str | Entity) -> str:
        name = _own_id(entity)
        found = entities.find(transaction, named(name))
        if found is None:
            alike = entities.listed(transaction, like=named(name).name, limit=3)
            meant = ", ".join(repr(each.name) for each in alike)
            raise NotFoundError(
                f"no entity with id or name {name!r}; "
                + (
                    f"did you mean {meant}?"
                    if meant
                    else "`graph.entities()` lists those there are"
                )
            )
        return found

    def _target(self, transaction: Transaction, target: Named) -> Target:
        """What somebody means by a target, the id or name of an entity, or an id or URI."""
        if isinstance(target, Target):
            if target.kind is TargetKind.ENTITY:
                return Target(target.kind, self._entity_id(transaction, target.id))
            relations.check_target(transaction, target)
            return target
        name = _own_id(target)
        entity = entities.find(transaction, named(name))
        if entity is not None:
            return Target(TargetKind.ENTITY, entity)
        found = reading.find_target(transaction, name)
        if found is None:
            self._entity_id(transaction, name)  # says what is missing
            raise NotFoundError(f"nothing with id or name {name!r}")
        return found


def _own_id(entity: str | Entity) -> str:
    return entity.id if isinstance(entity, Entity) else check_text("entity", entity)


def _named(name: str) -> SubjectName:
    """A name that somebody gives an entity.

    Raises:
        ConfigError: It is empty, too long, or no text.
    """
    found = named(name)
    if not found.key or len(found.name) > _LONGEST:
        raise ConfigError(f"name={name!r}: give a name of 1 to {_LONGEST} characters")
    return found


def _word(what: str, value: str) -> str:
    """A name of a type or a relation: words, joined by underscores.

    Raises:
        ConfigError: It is none.
    """
    word = re.sub(r"[\s-]+", "_", check_text(what, value).strip())
    if not re.fullmatch(r"\w{1,80}", word):
        raise ConfigError(f"{what}={value!r}: give a word, such as depends_on")
    return word


def _several(what: str, values: Sequence[str]) -> Sequence[str]:
    if isinstance(values, str):
        raise ConfigError(f"{what}={values!r}: give a list of texts")
    return values


def _json(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Properties as they can be kept.

    Raises:
        ConfigError: They cannot.
    """
    if not isinstance(properties, Mapping):
        raise ConfigError(f"properties={properties!r}: give a mapping of names to JSON values")
    try:
        kept: dict[str, Any] = json.loads(json.dumps(dict(properties), allow_nan=False))
    except (TypeError, ValueError) as error:
        raise ConfigError(f"properties: give JSON values ({error})") from None
    return kept
