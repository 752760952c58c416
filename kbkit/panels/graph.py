"""The knowledge graph panel."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import ipywidgets as widgets
import traitlets

from kbkit import models
from kbkit.errors import ConfigError, ConflictError, NotFoundError
from kbkit.graph.graph import MAX_DRAWN, Graph
from kbkit.knowledge_base import KnowledgeBase, handle_of
from kbkit.models.values import pluralize
from kbkit.panels import controls, render
from kbkit.panels.controls import AnyTarget, KnowledgeBaseSelector, Topic
from kbkit.panels.panel import Answer, JobPanel, Message, View, text_in, texts_in
from kbkit.runtime.config import Settings

if TYPE_CHECKING:
    from kbkit.client.chunks import RemoteHandle
    from kbkit.client.graph import RemoteGraph


_SIZES = (100, 250, 500, 1_000, MAX_DRAWN)
_NEIGHBORS = 60
_MAX_MATCHES = 20
_GAPS = 12  # of each kind
_SUGGESTIONS = 20
_NO_KB = "No knowledge base yet: create one, ingest documents, and their graph appears here."
_NOTHING = (
    "No relations yet. The graph is built from the annotations of documents: make them with "
    "kb.annotations.make() or “kbkit annotate NAME”, or create an entity."
)


class GraphWidget(View, module="graph_panel.js"):
    """The picture, its list and forms."""


class GraphPanel(JobPanel):
    """Shows entities, relations and gaps, and edits them.

    ::

        panel = GraphPanel(workspace)   # or one knowledge base
        panel                           # at the end of a cell: shows it
        panel.entity                    # in a later cell: the entity that is selected

    The layout is deterministic. Rebuilding the graph keeps changes made here, and each can be
    reverted in one step. If an entity changes while it is edited here, the panel says so and keeps
    the typed text.

    Attributes:
        entity: The selected entity, or ``None``.
        error: The last error, or ``None``.
        rater: The name that changes are stored under.
        kb_box: Choice of the knowledge base; ``None`` if there is only one.
        size_box: Maximum number of nodes; the most important ones are shown.
        documents_box: Whether documents are nodes, too.
    """

    entity = traitlets.Any(None, help="The entity that is selected.")

    def __init__(
        self,
        target: AnyTarget,
        *,
        limit: int = 500,
        rater: str = "",
        on_open: Callable[[str | models.Hit], None] | None = None,
    ) -> None:
        self._selector = KnowledgeBaseSelector(target, on_change=self.refresh, offer_all=True)
        self.kb_box = self._selector.box
        self.rater = rater or Settings.load().rater
        self._on_open = on_open
        workspace = self._selector.workspace
        self._graph = (
            _graph_of(self._selector.find(), self.rater) if workspace is None else workspace.graph
        )
        self._seen: dict[str, models.Entity] = {}
        self._relations: dict[int, models.Relation] = {}
        self._hits: dict[str, models.Hit] = {}
        self._version = 0
        self._revisions: object = None
        sizes = sorted({*_SIZES, limit})
        self.size_box = controls.make(
            widgets.Dropdown, "Maximum nodes", options=[(f"{n:,}", n) for n in sizes], value=limit
        )
        self.documents_box = controls.make(widgets.Checkbox, "Documents", value=False, indent=False)
        self.documents_box.add_class("kbkit-check")
        for box in (self.size_box, self.documents_box):
            box.observe(lambda _change: self.refresh(), "value")
        super().__init__(self._selector.home, "graph", "Stop loading the graph")
        self._view = GraphWidget(self)
        boxes = controls.row(self.kb_box, self.size_box, self.documents_box)
        self.fill([boxes, self.status_line, self._view])
        self._show(models.GraphLayout(), "Loading the graph…")
        self.refresh()

    def refresh(self) -> None:
        """Show the current graph."""
        self.is_outcome = False
        self._redraw()

    def _redraw(self) -> None:
        if not self.keeps_outcome:
            self.error = None
        self._start(self.update_quietly()(self._read))

    def show(self, entity: str) -> None:
        """Select an entity by id or name."""
        with self.acting():
            node = self._graph.entity(entity)
            self._view.send({"select": render.entity_node(node)})

    # Controls

    def _update(self, topic: Topic) -> None:
        if topic == "graph":
            self._refresh_if_changed()
        elif topic != "ratings":
            self._selector.offer()
            self._redraw()

    def _refresh_if_changed(self) -> None:
        if self._revisions != self._current_revisions():
            self._redraw()

    def _current_revisions(self) -> object:
        revisions = {kb.id: handle_of(kb).site_revision() for kb in self._selector.selected()}
        return {kb: (numbers[0], numbers[-1]) for kb, numbers in revisions.items()}

    def _read(self) -> None:
        self._revisions = self._current_revisions()
        kbs = self._kbs()
        if kbs == []:
            self._show(models.GraphLayout(), _NO_KB)
            self.say(_NO_KB)
            return
        self.say("Loading the graph…")
        types = (*models.EntityType, "entity", "document") if self.documents_box.value else ()
        layout = self._graph.layout(kbs=kbs, limit=self.size_box.value, type=types)
        self._show(layout, _NOTHING)
        count, total = len(layout.nodes), layout.total
        nodes = pluralize(total, "node")
        extent = f"the {count:,} most connected of {nodes}" if count < total else nodes
        summary = f"{self._selector.name or 'All knowledge bases'}: {extent}" if count else _NOTHING
        self.say(summary)
        if count and not self._again:
            gaps = self._graph.gaps(kbs=kbs, limit=_GAPS)
            self._view.state = {**self._view.state, "gaps": [render.gap(each) for each in gaps]}

    def _kbs(self) -> list[str] | None:
        if self._selector.name:
            return [self._selector.name]
        workspace = self._selector.workspace
        return None if workspace is not None and list(workspace) else []

    def _show(self, layout: models.GraphLayout, notice: str) -> None:
        self._version += 1
        self._view.state = {
            "picture": render.graph_picture(layout),
            "version": self._version,
            "notice": notice,
            "gaps": [],
            "undo": self._last_edit(),
            "types": [each.value for each in models.EntityType],
        }

    def _last_edit(self) -> str:
        edits = self._graph.edits(by=self.rater, limit=1)
        return render.plain(edits[0].what, 200) if edits else ""

    # Requests of the page

    def _problem(self, error: Exception, message: Message) -> Answer:
        text = render.problem_line(error)
        match = re.match(r"(name|type|description|aliases|weight|note|target)=", str(error))
        field = match[1] if match and isinstance(error, ConfigError) else ""
        if message.get("event") == "relate":
            field = "relation" if field == "name" else field
            if isinstance(error, NotFoundError):
                field = "target"
        elif isinstance(error, ConflictError) and " already names" in str(error):
            quoted = repr(" ".join(str(message.get("name")).split()))
            field = "name" if f"{quoted} already" in str(error) else "aliases"
        current = None
        if isinstance(error, ConflictError) and message.get("event") == "update" and not field:
            node = text_in(message, "id")
            current = render.entity_fields(self._graph.entity(models.Target.of_key(node).id))
        return {"text": text, "field": field, "now": current}

    def _do_look(self, _message: Message) -> Answer:
        with self.update_quietly():
            self._refresh_if_changed()
        return {}

    def _do_details(self, message: Message) -> Answer:
        target = models.Target.of_key(text_in(message, "id"))
        steps = self._graph.neighbors(target, limit=_NEIGHBORS)
        hits = self._graph.passages(target)
        entity = None
        title = render.node(target, hits[0].title if hits else target.id, target.kind.value)
        if target.kind is models.TargetKind.ENTITY:
            entity = self._graph.entity(target.id)
            self._seen[entity.id] = self.entity = entity
            title = render.entity_node(entity)
        self._relations |= {
            step.relation.id: step.relation for step in steps if step.relation is not None
        }
        self._hits = {hit.chunk.id: hit for hit in hits}
        return render.node_details(entity, title, steps, hits)

    def _do_around(self, message: Message) -> Answer:
        target = models.Target.of_key(text_in(message, "id"))
        limit = min(self.size_box.value, 250)
        return render.graph_picture(self._graph.layout(target, kbs=self._kbs(), limit=limit))

    def _do_find(self, message: Message) -> list[dict[str, str]]:
        text = text_in(message, "text")
        entities = self._graph.entities(text, kbs=self._kbs(), limit=_MAX_MATCHES)
        return [render.entity_node(each) for each in entities]

    def _do_suggestions(self, _message: Message) -> list[Answer]:
        suggestions = self._graph.suggestions(limit=_SUGGESTIONS)
        return [render.merge_suggestion(each) for each in suggestions]

    def _do_create(self, message: Message) -> Answer:
        values = _values_in(message)
        values["type"] = values["type"] or "name"
        entity = self._graph.create(**values, by=self.rater)
        return self._answer_change(f"Created: {entity.name}", entity)

    def _do_update(self, message: Message) -> Answer:
        id_ = models.Target.of_key(text_in(message, "id")).id
        opened = self._graph.entity(id_) if message.get("over") else self._seen.get(id_)
        if opened is None:
            raise NotFoundError("this entity is not open here; select it again")
        values = _values_in(message).items()
        changes = {field: value for field, value in values if value != getattr(opened, field)}
        if not changes:
            return {"item": render.entity_node(opened)}
        changed = self._graph.update(opened, **changes, by=self.rater)
        return self._answer_change(f"Saved: {changed.name}", changed)

    def _do_delete(self, message: Message) -> Answer:
        id_ = models.Target.of_key(text_in(message, "id")).id
        entity = self._seen.get(id_) or self._graph.entity(id_)
        self._graph.delete(entity, by=self.rater)
        self.entity = None
        return self._answer_change(f"Deleted: {entity.name}", None)

    def _do_relate(self, message: Message) -> Answer:
        selected = models.Target.of_key(text_in(message, "id"))
        other = self._graph.entity(text_in(message, "target"))
        ends = (selected, other) if message.get("forward", True) else (other, selected)
        try:
            weight = float(str(message.get("weight") or 1))
        except ValueError:
            raise ConfigError(
                f"weight={message.get('weight')!r}: give a number above 0, at most 1"
            ) from None
        name, note = text_in(message, "relation"), text_in(message, "note")
        relation = self._graph.relate(
            ends[0], name, ends[1], weight=weight, note=note, by=self.rater
        )
        return self._answer_change(f"Related by {relation.name}", None)

    def _do_unrelate(self, message: Message) -> Answer:
        relation = self._relations.get(message.get("relation", 0))
        if relation is None:
            raise NotFoundError("this relation is not shown here; select its entity again")
        self._graph.delete(relation, by=self.rater)
        return self._answer_change(f"Deleted: relation {relation.name}", None)

    def _do_merge(self, message: Message) -> Answer:
        merged = self._graph.merge(*_pair_in(message), by=self.rater)
        return self._answer_change(f"Merged into {merged.name}", merged)

    def _do_refuse(self, message: Message) -> Answer:
        self._graph.refuse(*_pair_in(message), by=self.rater)
        return self._answer_change("Saved: they are not the same", None, redraw=False)

    def _do_undo(self, _message: Message) -> Answer:
        undone = self._graph.undo(by=self.rater)
        return self._answer_change(f"Undone: {undone.what}", None)

    def _answer_change(
        self, message: str, entity: models.Entity | None, *, redraw: bool = True
    ) -> Answer:
        message = render.plain(message, 200)
        self.announce(message)
        if redraw:
            self._redraw()
            self.publish("graph")
        return {
            "said": message,
            "undo": self._last_edit(),
            "item": None if entity is None else render.entity_node(entity),
        }

    def _do_open(self, message: Message) -> None:
        hit = self._hits.get(str(message.get("chunk")))
        if self._on_open is not None:
            self._on_open(hit if hit is not None else str(message.get("document")))


def _values_in(message: Message) -> dict[str, Any]:
    texts = {name: text_in(message, name) for name in render.ENTITY_TEXTS}
    return {**texts, "aliases": tuple(texts_in(message, "aliases"))}


def _pair_in(message: Message) -> tuple[str, str]:
    keep, merge = (models.Target.of_key(text_in(message, key)).id for key in ("keep", "merge"))
    return keep, merge


def _graph_of(kb: KnowledgeBase, rater: str) -> Graph | RemoteGraph:
    handle = handle_of(kb)
    if controls.is_local(kb):
        return Graph(handle.stores, rater)
    return cast("RemoteHandle", handle).workspace_graph
