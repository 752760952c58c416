"""Write a bundle of knowledge bases or a workspace while others write."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path

from kbkit.bundles.reader import private_key, sign
from kbkit.bundles.writer import BundleWriter, bundle_path
from kbkit.entries.store import EntryStore
from kbkit.errors import FilesError, ImpossibleError
from kbkit.files.store import FileStore
from kbkit.models import BundleInfo, Progress
from kbkit.models.documents import image_names_of
from kbkit.models.files import BUILT_IN, ENTRIES, FILES
from kbkit.runtime.progress import OnProgress
from kbkit.stores.catalog import bundled, knowledge_bases
from kbkit.stores.catalog.bundled import Values
from kbkit.stores.stores import Stores


def make_bundle(
    stores: Stores,
    place: str | Path,
    *,
    kbs: Sequence[str] | None,
    key_file: str | Path | None,
    tell: OnProgress,
) -> BundleInfo:
    began = time.monotonic()
    if key_file is not None:
        private_key(key_file)  # fails before the work, if at all
    path = bundle_path(place)
    skipped: list[str] = []
    counts: dict[str, int] = {}
    with ExitStack() as stack:
        writer = stack.enter_context(BundleWriter(path))
        locked = stack.enter_context(ExitStack())
        folders = _locked_folders(locked, stores) if kbs is None else {}
        transaction = stack.enter_context(stores.database.read())
        names = knowledge_bases.names(transaction)  # begins the snapshot of the catalog
        if kbs is not None:
            names = [knowledge_bases.get(transaction, name).name for name in _own(kbs)]
        for folder, store in folders.items():
            for name, parts in _files(store, skipped):
                writer.add(f"{folder}/{name}", parts)
                tell(Progress("store", len(counts), message=name))
        locked.close()
        ids = [knowledge_bases.get(transaction, name).id for name in names]
        images: set[str] = set()
        for table, rows in bundled.rows(transaction, ids, whole=kbs is None):
            seen = _with_images(rows, images) if table == "documents" else rows
            counts[table] = writer.add_rows(
                f"tables/{table}.jsonl", _with_progress(seen, table, tell)
            )
        for name in sorted(images):
            data = stores.images.read(name)
            if data is None:
                skipped.append(f"images/{name}: no such picture")
            else:
                writer.add(f"images/{name}", [data])
        digest = writer.finish(
            {
                "kbkit": version("kbkit"),
                "revision": bundled.REVISION,
                "whole": kbs is None,
                "knowledge_bases": names,
            },
            None if key_file is None else lambda manifest: sign(manifest, key_file),
        )
    return BundleInfo(
        str(path),
        tuple(names),
        counts["documents"],
        counts["chunks"],
        path.stat().st_size,
        digest,
        key_file is not None,
        tuple(skipped),
        round(time.monotonic() - began, 3),
    )


def _own(kbs: Sequence[str]) -> list[str]:
    names = [kbs] if isinstance(kbs, str) else list(dict.fromkeys(kbs))
    for name in names:
        if name in BUILT_IN:
            raise ImpossibleError(f"{name}: goes with the {name} of a workspace; bundle all of it")
    if not names:
        raise ImpossibleError("name the knowledge bases to bundle, or bundle all")
    return sorted(names)


def _locked_folders(locks: ExitStack, stores: Stores) -> dict[str, FileStore]:
    stores.require_home()
    folders: dict[str, FileStore] = {}
    for name, store in stores_of_files(stores).items():
        if store.root.is_dir():
            locks.enter_context(store.locked())
            folders[name] = store
    return folders


def stores_of_files(stores: Stores) -> dict[str, FileStore]:
    return {
        FILES: FileStore(stores.folder / FILES, stores.locks),
        ENTRIES: EntryStore(stores.folder / ENTRIES, stores.locks),
    }


def _files(store: FileStore, skipped: list[str]) -> Iterator[tuple[str, Iterable[bytes]]]:
    for item in store.walk("", lambda at, why: skipped.append(f"{at}: {why}")):
        if item.is_folder or (isinstance(store, EntryStore) and "/" not in item.path):
            continue
        try:
            data = store.read(item.path).data
        except FilesError as error:
            skipped.append(str(error))
            continue
        yield item.path, [data]


def _with_images(rows: Iterable[Values], images: set[str]) -> Iterator[Values]:
    for row in rows:
        images.update(image_names_of(row["metadata"]).values())
        yield row


def _with_progress(
    rows: Iterable[Values], table: str, tell: Callable[[Progress], None]
) -> Iterator[Values]:
    for number, row in enumerate(rows, 1):
        if number % 1_000 == 0:
            tell(Progress("copy", number, message=table))
        yield row
