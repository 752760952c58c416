"""Check a workspace, and repair data that derives from the catalog."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from kbkit.errors import KbkitError
from kbkit.knowledge_base.handle import Handle
from kbkit.models.values import Finding, Health, Problem, Run
from kbkit.stores.catalog import inspection, knowledge_bases, runs
from kbkit.stores.catalog.database import RESTORE
from kbkit.stores.catalog.knowledge_bases import KnowledgeBaseRow
from kbkit.stores.stores import Stores

_RESTORE = f"{RESTORE}, or build its recipes again there"
_REPAIR = "run `kbkit doctor --repair`"


@dataclass(slots=True)
class Doctor:
    """One check of a workspace.

    Attributes:
        skipped: Reasons why parts of a folder are not searched, by name of the folder.
    """

    stores: Stores
    repair: bool
    handle: Callable[[str], Handle]
    skipped: Mapping[str, Callable[[], Iterable[Problem]]]
    _findings: list[Finding] = field(default_factory=list)

    def examine(self) -> Health:
        """Check everything; the catalog first, since the rest derives from it."""
        database = self.stores.database
        faults = self._catalog()
        if faults and self.repair:
            remaining = self._catalog(repair=True)
            repaired = (fault for fault in faults if fault not in remaining)
            self._findings += [Finding("catalog", "", fault, _REPAIR, True) for fault in repaired]
            faults = remaining
        derived = all(" index " in fault for fault in faults) and not self.repair
        self._report("catalog", "", faults, _REPAIR if derived else _RESTORE)
        if faults:
            return Health(tuple(self._findings))
        rows = database.look_up(knowledge_bases.rows)
        for row in rows:
            self._examine(row)
        self._outside()
        return Health(tuple(self._findings), len(rows))

    def _catalog(self, *, repair: bool = False) -> list[str]:
        database = self.stores.database
        faults = database.faults(repair=repair)
        with database.read() as transaction:
            return [*faults, *inspection.unreadable(transaction)]

    def _report(
        self,
        part: str,
        kb: str,
        problems: Iterable[str],
        remedy: str = _REPAIR,
        mend: Callable[[], object] | None = None,
    ) -> bool:
        faults = list(problems)
        mended = False
        if faults and self.repair and mend is not None:
            mend()
            mended = True
        self._findings += [Finding(part, kb, problem, remedy, mended) for problem in faults]
        return not faults

    def _examine(self, row: KnowledgeBaseRow) -> None:
        database, name = self.stores.database, row.name
        upgrade = "upgrade kbkit, or configure the knowledge base again (`kbkit build RECIPE`)"
        if not self._report("configuration", name, inspection.wrong_config(row), upgrade):
            return
        with database.read() as transaction:
            vectors = list(inspection.wrong_vectors(transaction, row))
            places = list(inspection.wrong_places(transaction, row))
        self._report("catalog", name, places, _RESTORE)
        if not self._report("vectors", name, vectors, _RESTORE):
            return
        try:
            self.handle(name).embedder(row)
        except KbkitError as error:
            self._report("embedder", name, [str(error)], "fix that; search by words goes on")
        self._index(row)
        snapshots = self.stores.snapshots
        faults = snapshots.faults(row.id)
        self._report("snapshot", name, faults, mend=lambda: snapshots.rebuild(row.id))

    def _index(self, row: KnowledgeBaseRow) -> None:
        vectors = self.stores.vectors
        try:
            faults = vectors.faults(row.id)
            self._report("index", row.name, faults, mend=lambda: vectors.rebuild(row.id))
        except KbkitError as error:
            self._report("index", row.name, [str(error)], "fix that; nothing is lost")

    def _outside(self) -> None:
        for part, skipped in self.skipped.items():
            if not (self.stores.folder / part).is_dir():
                continue
            try:
                lines = [str(problem) for problem in skipped()]
            except KbkitError as error:
                lines = [str(error)]
            self._report(part, "", lines, "fix the file, or move it out of the folder")


_COUNTED = ("new", "changed", "same", "gone", "fetched", "failed", "skipped", "chunks_embedded")


def history(stores: Stores, names: Iterable[str]) -> list[Run]:
    ordered = []
    with stores.database.read() as transaction:
        for name in names:
            row = knowledge_bases.get(transaction, name)
            places = {each.id: each.place for each in runs.list_sources(transaction, row.id)}
            for source, start, end, report in runs.history(transaction, row.id):
                seconds = (end - start).total_seconds() if end else 0.0
                counts = {each: n for each in _COUNTED if (n := _count(report.get(each)))}
                ordered.append(Run(name, places.get(source, ""), start, end, seconds, counts))
    return sorted(ordered, key=lambda run: run.started_at, reverse=True)


def _count(value: object) -> int:  # older workspaces have lists of failed and skipped items
    return value if isinstance(value, int) else len(value) if isinstance(value, list) else 0
