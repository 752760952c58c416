"""Make bundles while others write, and restore them, all or nothing."""

import hashlib
import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any
from uuid import uuid4

from pydantic import ValidationError

from kbkit import errors
from kbkit.bundles import BundleReader, BundleWriter, bundle_path, load_key, sign, verify
from kbkit.entries.folders import slug_fault
from kbkit.entries.store import EntryStore
from kbkit.files.store import FileStore
from kbkit.models import BundleInfo, Image, Progress, Restoration
from kbkit.models.documents import image_names_of
from kbkit.models.values import BUILT_IN, ENTRIES, FILES
from kbkit.paths import replacing
from kbkit.recipes import KnowledgeBaseSpec, parse_source
from kbkit.runtime.progress import OnProgress
from kbkit.sources.html.images import prepare_image
from kbkit.stores.catalog import bundled, knowledge_bases
from kbkit.stores.catalog.bundled import Values
from kbkit.stores.catalog.database import Transaction
from kbkit.stores.catalog.restoring import Restorer
from kbkit.stores.stores import Stores

LOCK = "restore"


class Placement:
    """The files of one bundle.

    Attributes:
        placed: Paths that were added.
        kept: Paths that exist with different content, and are kept.
    """

    def __init__(self, bundle: BundleReader, stores: Stores) -> None:
        self._bundle, self._stores = bundle, stores
        self.placed: list[str] = []
        self.kept: list[str] = []
        self._token = uuid4().hex
        self._folders = stores_of_files(stores)

    @contextmanager
    def ready(self) -> Iterator[None]:
        """Lock the folders, and record what will be placed there."""
        names = {folder: self._bundle.names(folder) for folder in (FILES, ENTRIES)}
        if not any(names.values()):
            yield
            return
        self._stores.require_home()
        members = self._bundle.manifest.members
        with self._folders[FILES].hold_lock(), self._folders[ENTRIES].hold_lock():
            for folder, store in self._folders.items():
                for name in names[folder]:
                    if _missing(store, folder, name):
                        self.placed.append(f"{folder}/{name}")
                    elif not _holds(store.root / name, members[f"{folder}/{name}"].sha256):
                        self.kept.append(f"{folder}/{name}")
            journal = self._stores.folder / bundled.JOURNAL
            digests = {name: members[name].sha256 for name in self.placed}
            try:
                if self.placed:
                    with replacing(journal) as draft:
                        draft.write_text(json.dumps({"token": self._token, "files": digests}))
                yield
                if self.placed:
                    self._stores.database.commit(bundled.forget, self._token)
                    journal.unlink()
            except Exception:
                settle(self._stores)
                raise

    def put(self, transaction: Transaction) -> None:
        """Place the folders, after the rows of the same transaction."""
        if not self.placed:
            return
        bundled.note(transaction, self._token)
        entries: dict[str, dict[str, bytes]] = {}
        try:
            for place in self.placed:
                folder, _, path = place.partition("/")
                data = self._bundle.read(place)
                if folder == FILES:
                    self._folders[FILES].write(path, data, if_match="")
                else:
                    slug, _, inside = path.partition("/")
                    entries.setdefault(slug, {})[inside] = data
            store = self._folders[ENTRIES]
            assert isinstance(store, EntryStore)
            for slug, files in entries.items():
                store.place(slug, files)
        except errors.FilesError as error:
            raise errors.BundleError(f"{error}; nothing was changed") from error


def settle(stores: Stores) -> None:
    """Remove files of an incomplete restoration, if it was not committed."""
    journal = stores.folder / bundled.JOURNAL
    try:
        record = json.loads(journal.read_text(encoding="utf-8"))
        token, files = str(record["token"]), dict(record["files"])
    except (OSError, ValueError, TypeError, KeyError):
        return
    with stores.database.write() as transaction:
        is_committed = bundled.counts(transaction, token)
        bundled.forget(transaction, token)
        if not is_committed:
            for place, digest in files.items():
                with suppress(OSError):
                    _remove(stores.folder, place, digest)
    journal.unlink(missing_ok=True)


def settle_alone(stores: Stores) -> None:
    """Run `settle`, unless a restoration is running."""
    if (stores.folder / bundled.JOURNAL).exists():
        with suppress(errors.ConflictError, errors.KbkitError), stores.locks.hold(LOCK, wait=0):
            settle(stores)


def _remove(folder: Path, place: str, digest: str) -> None:
    path = folder / place
    if not _holds(path, digest):
        return
    path.unlink()
    for ancestor in list(path.parents):
        if ancestor.parent == folder:
            return
        ancestor.rmdir()


def _holds(path: Path, digest: str) -> bool:
    if path.is_symlink() or not path.is_file():
        return False
    return hashlib.sha256(path.read_bytes()).hexdigest() == digest


def _missing(store: FileStore, folder: str, name: str) -> bool:
    """Whether a file, or the whole entry of a file, does not exist."""
    root = store.root
    if folder == ENTRIES:
        slug = name.partition("/")[0]
        if fault := slug_fault(slug):
            raise errors.BundleError(f"entries/{slug}: {fault}; nothing was changed")
        return not (root / slug).exists()
    return not (root / name).exists()


# embedders and annotators that need neither foreign code nor the network
_SAFE_TYPES = frozenset({"auto", "static", "multilingual", "rules", "none"})


def restore_bundle(
    stores: Stores,
    path: str | Path,
    *,
    name: str,
    key_file: str | Path | None,
    trust: bool,
    notify: OnProgress,
) -> Restoration:
    began = time.monotonic()
    trust = trust or key_file is not None

    with BundleReader(Path(path), bundled.REVISION) as bundle:
        if key_file is not None:
            verify(bundle.signature, bundle.manifest_bytes, key_file)
        _check(bundle, name, trust)
        images = bundle.names("images")
        for image_name in images:  # before anything is stored
            _image(bundle, image_name)
        with stores.locks.hold(LOCK, wait=0, task="restoring a bundle"):
            settle(stores)  # cleans up after a killed restoration
            for image_name in images:  # invisible until a document shows them
                stores.images.add(_image(bundle, image_name))
            files = Placement(bundle, stores)
            with files.ready(), stores.database.write() as transaction:
                restored = Restorer(transaction, bundle.rows, name, trust).run()
                files.put(transaction)
        rows = bundle.rows("sources")
        disabled = 0 if trust else sum(row["enabled"] for row in rows)
    with stores.database.read() as transaction:
        ids = [knowledge_bases.get(transaction, each.name).id for each in restored]
    for kb_id in ids:
        with suppress(errors.KbkitError):  # a failed update is repeated later
            stores.vectors.apply(kb_id, lambda done: notify(Progress("index", done)))
    seconds = round(time.monotonic() - began, 3)
    return Restoration(
        str(path), restored, tuple(files.placed), tuple(files.kept), disabled, seconds
    )


def _check(bundle: BundleReader, name: str, trust: bool) -> None:
    manifest = bundle.manifest
    if name and len(manifest.knowledge_bases) != 1:
        raise errors.ImpossibleError(
            f"{bundle.path}: has {len(manifest.knowledge_bases)} knowledge bases, and a name can "
            "be given to one"
        )
    names = []
    for row in bundle.rows("knowledge_bases"):
        try:
            names.append(row["name"])
            spec = KnowledgeBaseSpec.model_validate(row["config"])
        except (ValidationError, ValueError, TypeError, KeyError, RecursionError):
            raise _refusal(
                bundle, "a knowledge base is configured in a way that this kbkit does not know"
            ) from None
        foreign = [] if trust else _foreign(spec)
        if foreign:
            raise errors.BundleError(
                f"{bundle.path}: {str(row['name'])[:80]} uses {', '.join(foreign)}, which may run "
                "code or call services; nothing was changed; restore it with --trust if you trust "
                "who made it, or with --verify and their key"
            )
    if sorted(map(str, names)) != sorted(manifest.knowledge_bases):
        raise _refusal(bundle, "its knowledge bases differ from its manifest")
    for row in bundle.rows("sources"):
        try:
            parse_source(row["spec"])
        except (errors.ConfigError, TypeError, KeyError, RecursionError):
            raise _refusal(
                bundle, "a source is described in a way that this kbkit does not know"
            ) from None


def _refusal(bundle: BundleReader, reason: str) -> errors.BundleError:
    return errors.BundleError(f"{bundle.path}: {reason}; nothing was changed")


def _image(bundle: BundleReader, name: str) -> Image:
    """Read a picture; refuse files with active content."""
    image = prepare_image(bundle.read(f"images/{name}"))
    if image is None or image.name != name:
        raise _refusal(bundle, f"images/{name}: is not an image")
    return image


def _foreign(spec: KnowledgeBaseSpec) -> list[str]:
    names_of_code: list[str] = []
    parts: tuple[Any, ...] = (spec.embedding, spec.summary_embedding, spec.annotation)
    for part in parts:
        if part is None or part.type in _SAFE_TYPES:
            continue
        if part.type != "onnx" or part.model is not None or part.tokenizer is not None:
            names = (getattr(part, key, None) for key in ("llm", "model", "name", "tokenizer"))
            names_of_code.append(next(filter(None, names), part.type))
    if spec.expand is not None:
        names_of_code.append(spec.expand.llm)
    names_of_code += [each.path for each in spec.retrieval.postprocessors]
    return [ascii(each)[1:80].rstrip("'") for each in names_of_code]


def make_bundle(
    stores: Stores,
    place: str | Path,
    *,
    kbs: Sequence[str] | None,
    key_file: str | Path | None,
    notify: OnProgress,
) -> BundleInfo:
    began = time.monotonic()
    if key_file is not None:
        load_key(key_file)  # fails before the work, if at all
    path = bundle_path(place)
    skipped: list[str] = []
    counts: Counter[str] = Counter()
    images: set[str] = set()

    def count(table: str, rows: Iterable[Values]) -> Iterator[Values]:
        for row in rows:
            counts[table] += 1
            if table == "documents":
                images.update(image_names_of(row["metadata"]).values())
            if counts[table] % 1_000 == 0:
                notify(Progress("copy", counts[table], message=table))
            yield row

    with ExitStack() as stack:
        writer = stack.enter_context(BundleWriter(path))
        locked = stack.enter_context(ExitStack())
        folders: dict[str, FileStore] = {}
        if kbs is None:
            stores.require_home()
            files = stores_of_files(stores).items()
            folders = {name: store for name, store in files if store.root.is_dir()}
        for store in folders.values():
            locked.enter_context(store.hold_lock())
        transaction = stack.enter_context(stores.database.read())
        names = knowledge_bases.names(transaction)  # begins the snapshot of the catalog
        if kbs is not None:
            names = [knowledge_bases.get(transaction, name).name for name in _own_names(kbs)]
        for folder, store in folders.items():
            for item in store.walk("", lambda at, why: skipped.append(f"{at}: {why}")):
                if not item.is_folder and (folder == FILES or "/" in item.path):
                    try:
                        writer.add(f"{folder}/{item.path}", [store.read(item.path).data])
                    except errors.FilesError as error:
                        skipped.append(str(error))
                    notify(Progress("store", len(counts), message=item.path))
        locked.close()
        ids = [knowledge_bases.get(transaction, name).id for name in names]
        for table, rows in bundled.rows(transaction, ids, whole=kbs is None):
            writer.add_rows(f"tables/{table}.jsonl", count(table, rows))
        for name in sorted(images):
            data = stores.images.read(name)
            if data is None:
                skipped.append(f"images/{name}: no such image")
            else:
                writer.add(f"images/{name}", [data])
        values: Values = {"kbkit": version("kbkit"), "revision": bundled.REVISION}
        values |= {"whole": kbs is None, "knowledge_bases": names}
        signer = None if key_file is None else partial(sign, key_file=key_file)
        digest = writer.finish(values, signer)
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


def _own_names(kbs: Sequence[str]) -> list[str]:
    names = [kbs] if isinstance(kbs, str) else list(dict.fromkeys(kbs))
    for name in names:
        if name in BUILT_IN:
            raise errors.ImpossibleError(
                f"{name}: belongs to the {name} of a workspace; bundle all of it"
            )
    if not names:
        raise errors.ImpossibleError("name the knowledge bases to bundle, or bundle all")
    return sorted(names)


def stores_of_files(stores: Stores) -> dict[str, FileStore]:
    return {
        FILES: FileStore(stores.folder / FILES, stores.locks),
        ENTRIES: EntryStore(stores.folder / ENTRIES, stores.locks),
    }
