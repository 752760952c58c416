"""Check a workspace, and repair data that derives from the catalog."""

from collections.abc import Callable, Iterable, Mapping

from kbkit.errors import KbkitError
from kbkit.knowledge_base.handle import Handle
from kbkit.models.values import Finding, Health, Problem, Run
from kbkit.stores.catalog import inspection, knowledge_bases, runs
from kbkit.stores.catalog.database import RESTORE, Database
from kbkit.stores.catalog.knowledge_bases import KnowledgeBaseRow
from kbkit.stores.snapshots.snapshots import Snapshots
from kbkit.stores.stores import Stores
from kbkit.stores.vector_index import VectorIndex

_RESTORE = f"{RESTORE}, or build its recipes again there"
_REPAIR = "run `kbkit doctor --repair`"


def examine(
    stores: Stores,
    handle: Callable[[str], Handle],
    skipped: Mapping[str, Callable[[], Iterable[Problem]]],
    *,
    repair: bool,
) -> Health:
    """Check everything; the catalog first, since the rest derives from it.

    `skipped` returns the reasons why parts of a folder are not searched, by name of the folder.
    """
    findings: list[Finding] = []
    faults = _catalog_faults(stores.database)
    if faults and repair:
        remaining = _catalog_faults(stores.database, repair=True)
        repaired = (fault for fault in faults if fault not in remaining)
        findings += [Finding("catalog", "", fault, _REPAIR, mended=True) for fault in repaired]
        faults = remaining
    derived = all(" index " in fault for fault in faults) and not repair
    remedy = _REPAIR if derived else _RESTORE
    findings += [Finding("catalog", "", fault, remedy) for fault in faults]
    if faults:
        return Health(tuple(findings))
    rows = stores.database.look_up(knowledge_bases.rows)
    for row in rows:
        findings += _examine(stores, row, handle, repair)
    for part, problems in skipped.items():
        if (stores.folder / part).is_dir():
            try:
                reasons = [str(problem) for problem in problems()]
            except KbkitError as error:
                reasons = [str(error)]
            remedy = "fix the file, or move it out of the folder"
            findings += [Finding(part, "", reason, remedy) for reason in reasons]
    return Health(tuple(findings), len(rows))


def _catalog_faults(database: Database, *, repair: bool = False) -> list[str]:
    faults = database.faults(repair=repair)
    with database.read() as transaction:
        return [*faults, *inspection.unreadable(transaction)]


def _examine(
    stores: Stores, row: KnowledgeBaseRow, handle: Callable[[str], Handle], repair: bool
) -> list[Finding]:
    name = row.name
    upgrade = "upgrade kbkit, or configure the knowledge base again (`kbkit build RECIPE`)"
    if wrong := [*inspection.wrong_config(row)]:
        return [Finding("configuration", name, problem, upgrade) for problem in wrong]
    with stores.database.read() as transaction:
        vectors = list(inspection.wrong_vectors(transaction, row))
        places = inspection.wrong_places(transaction, row)
        findings = [Finding("catalog", name, problem, _RESTORE) for problem in places]
    if vectors:
        return findings + [Finding("vectors", name, problem, _RESTORE) for problem in vectors]
    try:
        handle(name).embedder(row)
    except KbkitError as error:
        findings.append(Finding("embedder", name, str(error), "fix that; search by words goes on"))
    try:
        findings += _check_derived("index", stores.vectors, row, repair)
    except KbkitError as error:
        findings.append(Finding("index", name, str(error), "fix that; nothing is lost"))
    return findings + _check_derived("snapshot", stores.snapshots, row, repair)


def _check_derived(
    part: str, derived: VectorIndex | Snapshots, row: KnowledgeBaseRow, repair: bool
) -> list[Finding]:
    faults = derived.faults(row.id)
    if faults and repair:
        derived.rebuild(row.id)
    return [Finding(part, row.name, fault, _REPAIR, mended=repair) for fault in faults]


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
