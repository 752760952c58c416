"""Check a workspace, repair data that derives from the catalog, and empty the trash."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from kbkit import models
from kbkit.errors import KbkitError
from kbkit.knowledge_base import handle_of
from kbkit.models.values import Finding, Health
from kbkit.runtime.validation import explain_calls
from kbkit.stores.catalog import inspection, knowledge_bases, outbox, runs
from kbkit.stores.catalog.database import RESTORE, Database
from kbkit.stores.catalog.knowledge_bases import KnowledgeBaseRow
from kbkit.stores.snapshots.snapshots import Snapshots
from kbkit.stores.vector_index import VectorIndex
from kbkit.workspace.searches import WorkspaceSearches

if TYPE_CHECKING:
    from kbkit.entries.entries import Entries
    from kbkit.files.files import Files

_RESTORE = f"{RESTORE}, or build its recipes again there"
_REPAIR = "run `kbkit doctor --repair`"
_COUNTED = ("new", "changed", "same", "gone", "fetched", "failed", "skipped", "chunks_embedded")


@explain_calls
class WorkspaceChecks(WorkspaceSearches):
    """Checks and repairs of a workspace."""

    @abstractmethod
    def _folders(self) -> Iterator[tuple[str, Files | Entries]]:
        """Iterate over the folders of files and entries."""

    def compact(self) -> models.Compaction:
        """Empty all trash, and make the workspace smaller.

        Refreshes still do not read deleted documents again. Unused pictures are deleted, too,
        unless a source is being read.

        Raises:
            WorkspaceError: Other processes keep using the catalog.
        """
        with self._stores.database.write() as transaction:
            documents, deleted = outbox.empty(transaction)
            kb_ids = knowledge_bases.ids(transaction)
        for kb_id in kb_ids:
            self._stores.vectors.apply(kb_id)
        self._stores.vectors.sweep()
        images, size = self._stores.sweep_images()
        emptied = {name: content._store.empty_trash() for name, content in self._folders()}
        size += self._stores.database.compact()
        return models.Compaction(documents, len(deleted), images, size, **emptied)

    def doctor(self, *, repair: bool = False) -> Health:
        """Check the workspace by content; list defects and remedies.

        Reads and checks the catalog (file, rows, vectors, words), embedders, each id and vector of
        the index, snapshots, files and entries.

        Args:
            repair: Rebuild damaged data that derives from the catalog.

        Raises:
            ConflictError: Another process wrote for too long.
        """
        findings: list[Finding] = []
        faults = _catalog_faults(self._stores.database)
        if faults and repair:
            remaining = _catalog_faults(self._stores.database, repair=True)
            repaired = (fault for fault in faults if fault not in remaining)
            findings += [Finding("catalog", "", fault, _REPAIR, mended=True) for fault in repaired]
            faults = remaining
        derived = all(" index " in fault for fault in faults) and not repair
        remedy = _REPAIR if derived else _RESTORE
        findings += [Finding("catalog", "", fault, remedy) for fault in faults]
        if faults:  # the rest derives from the catalog
            return Health(tuple(findings))
        rows = self._stores.database.look_up(knowledge_bases.rows)
        for row in rows:
            findings += self._examine(row, repair)
        for part, content in self._folders():
            try:
                reasons = [str(problem) for problem in content.sync().skipped]
            except KbkitError as error:
                reasons = [str(error)]
            remedy = "fix the file, or move it out of the folder"
            findings += [Finding(part, "", reason, remedy) for reason in reasons]
        return Health(tuple(findings), len(rows))

    def _examine(self, row: KnowledgeBaseRow, repair: bool) -> list[Finding]:
        name = row.name
        upgrade = "upgrade kbkit, or configure the knowledge base again (`kbkit build RECIPE`)"
        if wrong := [*inspection.wrong_config(row)]:
            return [Finding("configuration", name, problem, upgrade) for problem in wrong]
        with self._stores.database.read() as transaction:
            vectors = list(inspection.wrong_vectors(transaction, row))
            places = inspection.wrong_places(transaction, row)
            findings = [Finding("catalog", name, problem, _RESTORE) for problem in places]
        if vectors:
            return findings + [Finding("vectors", name, problem, _RESTORE) for problem in vectors]
        try:
            handle_of(self[name]).embedders.of(row)
        except KbkitError as error:
            findings.append(
                Finding("embedder", name, str(error), "fix that; search by words goes on")
            )
        try:
            findings += _check_derived("index", self._stores.vectors, row, repair)
        except KbkitError as error:
            findings.append(Finding("index", name, str(error), "fix that; nothing is lost"))
        return findings + _check_derived("snapshot", self._stores.snapshots, row, repair)

    def rebuild(self, names: Iterable[str] | None = None) -> list[str]:
        """Rebuild vector indexes and snapshots from the catalog; return the names.

        Args:
            names: Names of knowledge bases; all by default.

        Raises:
            NotFoundError: There is no such knowledge base.
            StoreUnreachableError: A vector server is unreachable; pending data stays searchable.
        """
        rebuilt = list(self if names is None else names)
        for name in rebuilt:
            kb_id = self._stores.database.look_up(knowledge_bases.get, name).id
            self._stores.snapshots.rebuild(kb_id)
            self._stores.vectors.rebuild(kb_id)
        return rebuilt

    def runs(self, names: Iterable[str] | None = None) -> list[models.Run]:
        """List runs of sources with time, duration and outcome, the last first.

        Args:
            names: Names of knowledge bases; all by default.

        Raises:
            NotFoundError: There is no such knowledge base.
        """
        ordered = []
        with self._stores.database.read() as transaction:
            for name in self if names is None else names:
                row = knowledge_bases.get(transaction, name)
                places = {each.id: each.place for each in runs.list_sources(transaction, row.id)}
                for source, start, end, report in runs.history(transaction, row.id):
                    seconds = (end - start).total_seconds() if end else 0.0
                    counts = {each: n for each in _COUNTED if (n := _count(report.get(each)))}
                    ordered.append(
                        models.Run(name, places.get(source, ""), start, end, seconds, counts)
                    )
        return sorted(ordered, key=lambda run: run.started_at, reverse=True)


def _catalog_faults(database: Database, *, repair: bool = False) -> list[str]:
    faults = database.faults(repair=repair)
    with database.read() as transaction:
        return [*faults, *inspection.unreadable(transaction)]


def _check_derived(
    part: str, derived: VectorIndex | Snapshots, row: KnowledgeBaseRow, repair: bool
) -> list[Finding]:
    faults = derived.faults(row.id)
    if faults and repair:
        derived.rebuild(row.id)
    return [Finding(part, row.name, fault, _REPAIR, mended=repair) for fault in faults]


def _count(value: object) -> int:  # older workspaces have lists of failed and skipped items
    return value if isinstance(value, int) else len(value) if isinstance(value, list) else 0
