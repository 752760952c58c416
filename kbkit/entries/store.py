"""Entries on disk, a folder each, and as documents and records of the catalog.

Changes of several files go to a new folder, which is then renamed.
"""

import hashlib
import json
import posixpath
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any, NamedTuple

from kbkit import errors, models
from kbkit.entries.folders import NAME, check_slug, slug_fault, unique
from kbkit.entries.skill_file import VOTES, SkillFile, located, read_skill, read_votes, vote_lines
from kbkit.files.directory import PART, Directory
from kbkit.files.folder import Stored, time_of, version
from kbkit.files.paths import join_parts, parts_of
from kbkit.files.store import FileStore
from kbkit.runtime.validation import check_text
from kbkit.stores.catalog.indexed_files import EntryRecord
from kbkit.text.markdown.writing import fence

PROMPT, README = "prompt.md", "README.md"
MAX_FILES = 1_000
MAX_BYTES = 100_000_000
_NEXT = f"{PART}next-"
"""Prefix of complete folders that will replace an entry."""
_ATTRIBUTES = ".gitattributes"
_UNION = b"""\
# a merge keeps the lines of both people
skill.yaml merge=union
votes.jsonl merge=union
"""


class FolderState(NamedTuple):
    """Status of an entry's files; ``changed`` is the last change in nanoseconds."""

    stamp: str
    changed: int


class StoredEntry(NamedTuple):
    """The folder of an entry; ``created`` is the time of its oldest file in nanoseconds."""

    slug: str
    skill: SkillFile
    rating: models.EntryRating
    files: Mapping[str, bytes]
    state: FolderState
    created: int
    changed: int

    @property
    def version(self) -> str:
        values = self.skill.model_dump(exclude={"rating", "created_at", "updated_at", "text"})
        text = json.dumps(list(values.values()), sort_keys=True, default=str)
        digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8)
        for path in sorted(self.files):
            if path not in (NAME, VOTES):
                digest.update(f"{path}\0{version(self.files[path])}\0".encode())
        return digest.hexdigest()


class EntryStore(FileStore):
    """The folder of the entries."""

    LOCK = "entries"
    WAIT = 600.0

    # ---- reading

    def states(self, report: Callable[[str, str], None]) -> dict[str, FolderState]:
        states: dict[str, FolderState] = {}
        for item in self.list():
            name = item.path
            if not item.is_folder:
                if name.lower() != "readme.md":
                    report(name, "is a file; an entry is a folder")
            elif why := slug_fault(name):
                report(name, f"the name {why}")
            elif (state := self.state(name)) is not None:
                states[name] = state
        return states

    def state(self, slug: str) -> FolderState | None:
        """Return the status of an entry's files; ``None`` without files."""
        digest = hashlib.blake2b(digest_size=8)
        changed = 0
        for item in self.walk(slug):
            status = item.status
            if not item.is_folder:
                times = status.st_mtime_ns, status.st_ctime_ns
                digest.update(f"{item.path}\0{status.st_size}\0{times}\n".encode())
                changed = max(changed, *times)
        return FolderState(digest.hexdigest(), changed) if changed else None

    def require(self, slug: str) -> FolderState:
        """Return the status of an entry's files; raise `MissingPathError` without files."""
        if (state := self.state(slug)) is None:
            raise errors.MissingPathError(f"{slug}: no such entry; list the entries to see all")
        return state

    def read_entry(self, slug: str) -> StoredEntry:
        try:
            return self._read_entry(slug)
        except errors.MissingPathError:
            with self.hold_lock():  # another process may be replacing the folder
                return self._read_entry(slug)

    def _read_entry(self, slug: str) -> StoredEntry:
        check_slug(slug)
        state = self.require(slug)
        files: dict[str, Stored] = {}
        size = 0
        for item in self.walk(slug):
            if item.is_folder:
                continue
            stored = self.read(item.path)
            files[item.path.removeprefix(f"{slug}/")] = stored
            size += len(stored.data)
            _check_size(slug, len(files), size)
        if NAME not in files:
            raise errors.EntryFormatError(
                f"{slug}: has no {NAME}; write one with a line 'title: ...'"
            )
        times = [stored.status.st_mtime_ns for stored in files.values()]
        data = {path: stored.data for path, stored in files.items()}
        with located(f"{slug}/"):
            skill = read_skill(data[NAME])
            votes = dict.fromkeys((*skill.votes, *read_votes(data.get(VOTES, b""))))
        rating = models.EntryRating.of(tuple(sorted(votes)))
        return StoredEntry(slug, skill, rating, data, state, min(times), max(times))

    # ---- writing

    @contextmanager
    def hold_lock(self, *, wait: float | None = None) -> Iterator[None]:
        """Lock all files; first finish writes of a killed process."""
        is_held = getattr(self._lock_state, "held", False)
        with super().hold_lock(wait=wait):
            if not is_held and self.root.exists():
                with self._root() as root:
                    for name in root.names():
                        if name.startswith(_NEXT):
                            self._take_place(root, name)
            yield

    def place(self, slug: str, files: Mapping[str, bytes], *, replace: bool = False) -> None:
        """Write a whole entry atomically."""
        check_slug(slug)
        paths = {parts_of(path): data for path, data in files.items()}
        size = sum(map(len, paths.values()))
        _check_size(slug, len(paths), size)
        self._require_room(slug, size)
        with self.hold_lock(), self._root(make=True) as root:
            if root.stat(_ATTRIBUTES) is None:
                root.write(_ATTRIBUTES, _UNION, new=False, label=_ATTRIBUTES)
            if not replace and root.stat(slug) is not None:
                raise errors.PathExistsError(f"{slug}: already exists; choose another slug")
            with private_folder(root, slug, paths) as part:
                # from here on, a killed write is finished later
                root.move(part, root, f"{_NEXT}{slug}", slug)
            try:
                self._take_place(root, f"{_NEXT}{slug}")
            except errors.FilesError:
                if root.stat(slug) is not None:  # the old entry stays
                    root.remove(f"{_NEXT}{slug}")
                raise

    def existing(self, slug: str) -> StoredEntry | None:
        return None if self.state(slug) is None else self.read_entry(slug)

    def renew(self, slug: str, files: dict[str, bytes], before: StoredEntry | None) -> None:
        """Write a whole entry, with the votes of the existing one, unless only times differ."""
        if before is None:
            self.place(slug, files)
        elif before._replace(skill=read_skill(files[NAME]), files=files).version != before.version:
            votes = before.rating.votes
            vote_files = {VOTES: vote_lines(votes)} if votes else {}
            self.place(slug, {**files, **vote_files}, replace=True)

    def write_all(
        self, slug: str, files: Mapping[str, bytes | None], before: Mapping[str, bytes]
    ) -> None:
        """Write all files of an entry, or none, under a lock."""
        self._require_room(slug, sum(len(data) for data in files.values() if data is not None))
        written: list[str] = []
        try:
            for path, data in files.items():
                written.append(path)
                self._put(slug, path, data)
        except BaseException:
            for path in reversed(written):
                with suppress(errors.FilesError):  # a full disk may have no room for this, either
                    self._put(slug, path, before.get(path))
            raise

    def _put(self, slug: str, path: str, data: bytes | None) -> None:
        if data is None:
            self.remove_file(f"{slug}/{path}")
        else:
            self.write(f"{slug}/{path}", data)

    def _take_place(self, root: Directory, name: str) -> None:
        slug = name.removeprefix(_NEXT)
        if slug_fault(slug):
            return  # not written by this module
        if root.stat(slug) is not None:
            with self._trash() as trash:
                trash.put(root, slug, slug, models.FileKind.FOLDER, {})
        root.move(name, root, slug, slug)

    def remove_file(self, path: str) -> None:
        parts = self._writable(path)
        with self.hold_lock():
            with self._folder(parts[:-1]) as folder:
                folder.remove(self._name(folder, parts))
            for end in range(len(parts) - 1, 1, -1):
                with self._folder(parts[: end - 1]) as folder:
                    folder.remove_empty(self._name(folder, parts[:end]))


@contextmanager
def private_folder(
    root: Directory, label: str, files: Mapping[tuple[str, ...], bytes]
) -> Iterator[str]:
    """Write files into a folder for the block to move; an error removes it."""
    part = f"{PART}{secrets.token_hex(8)}"
    root.make(part)
    try:
        with root.child(part, label) as folder:
            for parts, data in files.items():
                _put_file(folder, parts, data, f"{label}/{join_parts(parts)}")
        yield part
    except BaseException:
        root.remove(part)
        raise


def _check_size(slug: str, files: int, size: int) -> None:
    if files > MAX_FILES or size > MAX_BYTES:
        raise errors.EntryFormatError(
            f"{slug}: has more than {MAX_FILES:,} files or {MAX_BYTES / 1e6:g} MB"
        )


def _put_file(folder: Directory, parts: tuple[str, ...], data: bytes, label: str) -> None:
    name, *subparts = parts
    if not subparts:
        folder.write(name, data, new=True, label=label)
        return
    folder.make(name)
    with folder.child(name, label) as child:
        _put_file(child, tuple(subparts), data, label)


def renewal(before: StoredEntry | None, slug: str, ids: Mapping[str, str]) -> dict[str, Any]:
    """Return id and times for the ``skill.yaml`` of a new version of an entry."""
    skill, now = before.skill if before is not None else None, datetime.now(UTC)
    other_ids = {entry_id for other, entry_id in ids.items() if other != slug}
    return {
        "id": (skill.id if skill else "") or unique(slug, other_ids),
        "created_at": (skill.created_at if skill else None) or now,
        "updated_at": now,
    }


_MAX_TEXT_LENGTH = 500_000  # characters of a prompt or a readme
_MAX_CODE_LENGTH = 50_000  # characters of all code
_FACTS = frozenset(each.name for each in fields(models.EntryInfo))


def document_of(stored: StoredEntry) -> models.SourceDocument:
    skill = stored.skill
    title = title_of(stored)
    texts = [text_of(stored, name)[:_MAX_TEXT_LENGTH].strip() for name in (PROMPT, README)]
    parts = [f"# {title}", skill.description, *texts, *_code(stored)]
    metadata = {
        "description": skill.description[:300],
        "category": skill.category,
        "status": skill.status.value,
        "source": skill.source.value,
        "entry": stored.slug,
    }
    text = "\n\n".join(filter(None, parts))
    present = {key: value for key, value in metadata.items() if value}
    return models.SourceDocument(stored.slug, title, text, tags=skill.tags, metadata=present)


def title_of(stored: StoredEntry) -> str:
    """Return an entry's title, else its folder's name."""
    return stored.skill.title or stored.slug.replace("-", " ").capitalize()


def text_of(stored: StoredEntry, path: str) -> str:
    """Return the text of a file, ``""`` if missing; replace invalid UTF-8."""
    return stored.files.get(path, b"").decode("utf-8-sig", "replace").replace("\r\n", "\n")


def _code(stored: StoredEntry) -> list[str]:
    parts, remaining = list[str](), _MAX_CODE_LENGTH
    for path in sorted(stored.files):
        if not path.startswith("code/") or remaining <= 0 or b"\0" in stored.files[path][:8_000]:
            continue
        text = text_of(stored, path)[:remaining]
        remaining -= len(text)
        language = posixpath.splitext(path)[1][1:]
        parts.append(f"## {path}\n\n{fence(text.rstrip(), language)}")
    return parts


def info_of(record: EntryRecord) -> models.EntryInfo:
    return models.EntryInfo(**_facts(record))


def _facts(record: EntryRecord) -> dict[str, Any]:
    facts = {name: value for name, value in record._asdict().items() if name in _FACTS}
    return {
        **facts,
        "tags": tuple(record.tags),
        "status": models.EntryStatus(record.status),
        "rating": models.EntryRating(record.average, record.votes),
        "source": models.EntrySource(record.source),
    }


def entry_of(stored: StoredEntry, record: EntryRecord | None) -> models.Entry:
    """Convert an entry; its id comes from the catalog, since copies have the same id on disk."""
    entry_id = record.id if record and record.version else stored.skill.id or stored.slug
    excluded = (NAME, VOTES, PROMPT, README)
    return models.Entry(
        **{**_facts(record_of(stored, entry_id)), "rating": stored.rating},
        prompt=text_of(stored, PROMPT),
        readme=text_of(stored, README),
        files=tuple(
            models.EntryFile(path, len(data))
            for path, data in sorted(stored.files.items())
            if path not in excluded
        ),
    )


def record_of(
    stored: StoredEntry, entry_id: str, document_id: str = "", read_at: int = 0
) -> EntryRecord:
    skill = stored.skill
    return EntryRecord(
        slug=stored.slug,
        id=entry_id,
        document_id=document_id,
        title=title_of(stored),
        description=skill.description,
        tags=skill.tags,
        category=skill.category,
        status=skill.status.value,
        average=stored.rating.average,
        votes=stored.rating.count,
        source=skill.source.value,
        origin_task_id=skill.origin_task_id,
        created_at=skill.created_at or time_of(stored.created),
        updated_at=skill.updated_at or time_of(stored.changed),
        version=stored.version,
        stamp=stored.state.stamp,
        changed=stored.state.changed,
        seen=read_at,
    )


# files with a separate argument
_ARGUMENT_FILES = frozenset({NAME, VOTES, PROMPT.casefold(), README.casefold()})


def check_files(files: Mapping[str, str | bytes | None]) -> dict[str, bytes | None]:
    contents: dict[str, bytes | None] = {}
    for path, content in files.items():
        parts = parts_of(path)
        if len(parts) == 0 or (len(parts) == 1 and parts[0].casefold() in _ARGUMENT_FILES):
            raise errors.InvalidPathError(
                f"{path}: name a file such as 'code/run.py'; prompt, readme, votes "
                "and values of skill.yaml have their own arguments"
            )
        if content is not None and not isinstance(content, str | bytes):
            raise errors.ConfigError(f"files: {path}: give text or bytes")
        contents[join_parts(parts)] = (
            check_text(path, content).encode() if isinstance(content, str) else content
        )
    return contents
