"""The entries of a workspace: solutions that worked, which people vote on and agents find again."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, BinaryIO

from kbkit.arguments import explained
from kbkit.config import Settings
from kbkit.entries.documents import text_of, title_of
from kbkit.entries.index import EntryIndex
from kbkit.entries.skill_file import (
    LONGEST_DESCRIPTION,
    LONGEST_TITLE,
    MOST_TAGS,
    NAME,
    edited,
    new_skill,
)
from kbkit.entries.slugs import check_slug, slug_of, unique
from kbkit.entries.store import PROMPT, README, EntryStore, StoredEntry
from kbkit.errors import (
    ConfigError,
    InvalidPathError,
    MissingPathError,
    VersionConflictError,
)
from kbkit.files.paths import joined, parts_of
from kbkit.ingest.pipeline import Stop
from kbkit.knowledge_base import KnowledgeBase
from kbkit.models import (
    DeletedFile,
    Entry,
    EntryFile,
    EntryInfo,
    EntryPage,
    EntryRating,
    EntrySource,
    EntryStatus,
    EntrySyncReport,
    Vote,
)
from kbkit.progress import OnProgress, progress_bar
from kbkit.stores.catalog import entries as catalog
from kbkit.stores.catalog.built_in import ENTRIES
from kbkit.stores.catalog.entries import EntryRecord
from kbkit.stores.stores import Stores
from kbkit.validation import check_integer, check_text

SORTS = ("rating", "updated", "title")
"""What a list of entries may be in the order of."""
_OWN = frozenset({NAME, PROMPT.casefold(), README.casefold()})
"""Files that have an argument of their own."""
_TICK = timedelta(microseconds=1)


@explained
class Entries:
    """Reusable solutions, each a folder with a ``skill.yaml``; ``workspace.entries``.

    Any editor and git may change them too. Several processes may read, write and vote at once:
    whoever reads sees what was or what is, and no vote is lost.
    """

    def __init__(
        self, store: EntryStore, index: EntryIndex, stores: Stores, settings: Settings
    ) -> None:
        self._store = store
        self._index = index
        self._database = stores.database
        self._settings = settings

    @property
    def path(self) -> Path:
        """The folder that they lie in."""
        return self._store.root

    # ---- reading

    def read(self, slug: str) -> Entry:
        """An entry with its prompt, its readme, its votes, and what other files it has.

        Raises:
            MissingPathError: There is none of that slug.
            EntryFormatError: Its ``skill.yaml`` cannot be read; names line and column.
        """
        stored = self._store.read_entry(slug)
        return _entry(stored, self._index.records().get(slug))

    def list(
        self,
        *,
        status: str | EntryStatus | None = None,
        category: str | None = None,
        tag: str | None = None,
        text: str = "",
        sort: str = "rating",
        limit: int | None = 50,
        offset: int = 0,
    ) -> EntryPage:
        """Entries in order, without their text.

        Args:
            status: Only ``active``, ``draft`` or ``deprecated`` ones.
            category: Only of this category, in capitals or not.
            tag: Only with this tag, in capitals or not.
            text: Only those in which it stands, in capitals or not.
            sort: ``rating``: the best first, where few votes count little; ``updated``: the last
                first; ``title``.
            limit: Most entries; ``None`` for all.
            offset: How many to leave out at the beginning.

        Raises:
            ConfigError: An argument is wrong.
        """
        self._index.level(on_progress=lambda _: None)
        if sort not in SORTS:
            raise ConfigError(f"sort={sort!r}: choose from {', '.join(SORTS)}")
        most = None if limit is None else check_integer("limit", limit, 1)
        start = check_integer("offset", offset, 0)
        with self._database.read() as transaction:
            found = catalog.listed(
                transaction,
                status=None if status is None else _status(status).value,
                category=None if category is None else check_text("category", category),
                tag=None if tag is None else check_text("tag", tag),
                text=check_text("text", text),
                sort=sort,
            )
        end = None if most is None else start + most
        return EntryPage(tuple(_info(each) for each in found[start:end]), len(found), start)

    def open(self, slug: str, path: str) -> BinaryIO:
        """A file of an entry, to be read bit by bit and closed; used as a ``with`` block.

        Args:
            slug: Of the entry.
            path: Of the file within it, such as ``code/run.py``.

        Raises:
            MissingPathError: There is no such entry, or no such file in it.
            IsFolderError: It is a folder.
            PathOutsideError: The path leads out of the entry.
        """
        return self._store.open(joined((check_slug(slug), *parts_of(path))))

    # ---- writing

    def create(
        self,
        title: str,
        *,
        slug: str = "",
        description: str = "",
        prompt: str = "",
        readme: str = "",
        tags: Sequence[str] = (),
        category: str = "",
        status: str | EntryStatus = EntryStatus.ACTIVE,
        files: Mapping[str, str | bytes] | None = None,
    ) -> Entry:
        """Write a new entry.

        Args:
            title: One line.
            slug: Name of its folder; by default made of the title.
            description: What it is good for: by this it is found.
            prompt: What tells an agent how to do it.
            readme: What tells people about it.
            tags: Free labels.
            category: What it belongs to.
            status: ``active``, ``draft`` or ``deprecated``.
            files: Other files, by path within the entry, such as ``code/run.py``.

        Raises:
            ConfigError: An argument is wrong; the message begins with its name.
            InvalidPathError: The slug is none, or a path may not be one.
            PathExistsError: The slug is taken.
        """
        said = _checked(title=title, description=description, tags=tags, category=category,
                        status=status, prompt=prompt, readme=readme)  # fmt: skip
        others = {path: data for path, data in _files(files or {}).items() if data is not None}
        if slug:
            check_slug(slug)
        with self._store.locked():
            there = {each.name.casefold() for each in self.path.iterdir()} if (
                self.path.is_dir()) else set()  # fmt: skip
            made = slug or slug_of(said["title"], there)
            ids = {record.id for record in self._index.records().values()}
            now = datetime.now(UTC)
            values = {key: value for key, value in said.items() if key not in _TEXTS}
            values |= {"id": unique(made, ids), "source": EntrySource.MANUAL.value,
                       "created_at": now, "updated_at": now}  # fmt: skip
            texts = {name: said[key].encode() for key, name in _TEXTS.items() if said[key]}
            self._store.place(made, {NAME: new_skill(values).encode(), **texts, **others})
        self._index.level()
        return self.read(made)

    def update(
        self,
        slug: str,
        *,
        title: str | None = None,
        description: str | None = None,
        prompt: str | None = None,
        readme: str | None = None,
        tags: Sequence[str] | None = None,
        category: str | None = None,
        status: str | EntryStatus | None = None,
        files: Mapping[str, str | bytes | None] | None = None,
        if_match: str | None = None,
    ) -> Entry:
        """Change an entry; what is not named stays, and so do comments in its ``skill.yaml``.

        Args:
            slug: Of the entry.
            title: As of `create`, like those that follow.
            description: What it is good for.
            prompt: What tells an agent how to do it.
            readme: What tells people about it.
            tags: Free labels.
            category: What it belongs to.
            status: ``active``, ``draft`` or ``deprecated``.
            files: Files to write, by path within the entry; ``None`` in place of one deletes it.
            if_match: The version that it must be of now (`EntryInfo.version`); votes leave it.

        Raises:
            MissingPathError: There is no such entry, or a file to delete is not there.
            ConfigError: An argument is wrong; the message begins with its name.
            VersionConflictError: Another change came between.
            EntryFormatError: Its ``skill.yaml`` cannot be read or changed; nothing is.
        """
        given = {"title": title, "description": description, "tags": tags, "category": category,
                 "status": status, "prompt": prompt, "readme": readme}  # fmt: skip
        said = _checked(**{key: value for key, value in given.items() if value is not None})
        others = _files(files or {})
        with self._store.locked():
            stored = self._store.read_entry(slug)
            if if_match is not None and if_match != stored.version:
                raise VersionConflictError(
                    f"{slug}: is of version {stored.version} now, not {if_match}: another change "
                    "came between; read it again, and write on top of that"
                )
            texts = {name: said[key].encode() for key, name in _TEXTS.items() if key in said}
            new: dict[str, bytes | None] = {**texts, **others}
            for path, data in new.items():
                if data is None and path not in stored.files:
                    raise MissingPathError(f"{slug}/{path}: there is nothing")
            written = {path: data for path, data in new.items() if stored.files.get(path) != data}
            values = {key: value for key, value in said.items() if key not in _TEXTS}
            text = edited(stored.skill.text, values)
            if written or text != stored.skill.text:
                text = edited(text, {"updated_at": datetime.now(UTC)})
                for path, data in written.items():
                    if data is None:
                        self._store.remove_file(f"{slug}/{path}")
                    else:
                        self._store.write(f"{slug}/{path}", data)
                self._store.write(f"{slug}/{NAME}", text.encode())
        self._index.level()
        return self.read(slug)

    def rename(self, slug: str, *, to: str) -> Entry:
        """Give an entry another slug; its id, votes and relations stay.

        Raises:
            MissingPathError: There is no such entry.
            InvalidPathError: The new slug is none.
            PathExistsError: It is taken.
        """
        check_slug(to)
        with self._store.locked():
            skill = self._store.read_skill(slug)
            record = self._index.records().get(slug)
            known = skill.id or (record.id if record else slug)
            self._store.move(slug, to)
            self._store.write(f"{to}/{NAME}", edited(skill.text, {"id": known}).encode())
        self._index.level()
        return self.read(to)

    def rate(self, slug: str, score: int, *, rater: str = "") -> Entry:
        """Vote for an entry.

        Args:
            slug: Of the entry.
            score: 1 (useless) to 5 (exactly right).
            rater: Who votes; by default ``KBKIT_RATER`` or the login name.

        Raises:
            ConfigError: The score is not 1 to 5.
            MissingPathError: There is no such entry.
            EntryFormatError: Its ``skill.yaml`` cannot be read.
        """
        stars = check_integer("score", score, 1, 5)
        who = " ".join(check_text("rater", rater or self._settings.rater).split())
        with self._store.locked():
            votes = self._store.read_skill(slug).rating.votes
            # what identifies a vote has its time in it
            now = max([datetime.now(UTC), *(vote.timestamp + _TICK for vote in votes[-1:])])
            self._index.add_votes(slug, [Vote(now, who, stars)])
        self._index.level()
        return self.read(slug)

    def delete(self, slug: str) -> DeletedFile:
        """Put an entry into the trash, from which `restore` brings it.

        Raises:
            MissingPathError: There is no such entry.
        """
        check_slug(slug)
        deleted = self._store.delete(slug, lambda _: {})
        self._index.level()
        return deleted

    def restore(self, slug: str, *, to: str = "") -> Entry:
        """Bring back the entry of that slug that was deleted, or replaced, last.

        Args:
            slug: What it was called, or its id in the trash.
            to: What it is to be called; by default as it was.

        Raises:
            MissingPathError: The trash has none of that slug.
            PathExistsError: There is one of that slug by now.
        """
        if to:
            check_slug(to)
        item, _ = self._store.restore(slug, to)
        self._index.level()
        return self.read(item.path)

    def trash(self) -> builtins.list[DeletedFile]:
        """What was deleted or replaced and `restore` can bring back, the last first."""
        try:
            with self._store.trash() as trash:
                return [kept.deleted for kept in trash.listed()]
        except MissingPathError:
            return []

    def sync(
        self, *, on_progress: OnProgress | None = None, stop: Stop = lambda: False
    ) -> EntrySyncReport:
        """Take over what was changed outside kbkit, and write votes that were given in searches.

        Opening a workspace does that too, and so does `kbkit watch` all the while. A folder whose
        ``skill.yaml`` cannot be read is told of, and stays as it is; what was known of it stays
        too. What a merge in git left of two people's votes is put together.

        Args:
            on_progress: Called as entries are stored; by default notebooks show a bar.
            stop: Asked often; true ends the work cleanly.

        Raises:
            ConflictError: Another process does the same all the time.
            EmbedderError: The embedder failed; what was stored stays.
        """
        self._store.sweep()
        with progress_bar(on_progress) as tell:
            return self._index.level(on_progress=tell, stop=stop)

    def __repr__(self) -> str:
        return f"<Entries in {str(self.path)!r}>"


_TEXTS = {"prompt": PROMPT, "readme": README}
"""Arguments that are files."""


def open_entries(
    stores: Stores, settings: Settings, knowledge_base: Callable[[], KnowledgeBase]
) -> Entries:
    """The entries of a workspace.

    Args:
        stores: Of the workspace.
        settings: Of the workspace.
        knowledge_base: Gives the one whose documents they are.
    """
    store = EntryStore(stores.folder / ENTRIES, stores.locks)
    return Entries(store, EntryIndex(store, stores, knowledge_base), stores, settings)


def take_over(entries: Entries) -> None:
    """Take over what was changed outside kbkit, unless another process does that right now."""
    with progress_bar(None) as tell:
        entries._index.level(wait=0, on_progress=tell)


def empty_trash(entries: Entries) -> int:
    """Remove what was deleted for good; gives how many entries that were."""
    try:
        with entries._store.trash() as trash:
            return trash.empty()
    except MissingPathError:
        return 0


def _checked(**said: Any) -> dict[str, Any]:
    """What somebody says of an entry, each in one form.

    Raises:
        ConfigError: Something is wrong; the message begins with its name.
    """
    found = {key: value if key in ("tags", "status") else check_text(key, value)
             for key, value in said.items()}  # fmt: skip
    for key, most in (("title", LONGEST_TITLE), ("category", LONGEST_TITLE)):
        if key in found:
            found[key] = " ".join(found[key].split())
            if len(found[key]) > most:
                raise ConfigError(f"{key}: has more than {most} characters; say it shorter")
    if found.get("title") == "":
        raise ConfigError("title: is empty; say in a line what the entry does")
    if len(found.get("description", "")) > LONGEST_DESCRIPTION:
        raise ConfigError(f"description: has more than {LONGEST_DESCRIPTION:,} characters; say "
                          "more in the prompt or the readme")  # fmt: skip
    if "description" in found:
        found["description"] = found["description"].strip()
    if "tags" in found:
        found["tags"] = _tags(found["tags"])
    if "status" in found:
        found["status"] = _status(found["status"]).value
    return found


def _tags(tags: Any) -> tuple[str, ...]:
    if isinstance(tags, str) or not isinstance(tags, Sequence):
        raise ConfigError(f"tags={tags!r}: give a list of words, such as ['logs', 'python']")
    said = (" ".join(check_text("tags", each).split()).removeprefix("#") for each in tags)
    found = tuple(dict.fromkeys(each[:LONGEST_TITLE] for each in said if each))
    if len(found) > MOST_TAGS:
        raise ConfigError(f"tags: more than {MOST_TAGS}")
    return found


def _status(status: str | EntryStatus) -> EntryStatus:
    try:
        return EntryStatus(status)
    except ValueError:
        raise ConfigError(f"status={status!r}: choose from {', '.join(EntryStatus)}") from None


def _files(files: Mapping[str, str | bytes | None]) -> dict[str, bytes | None]:
    """Files as they are written, by path in one form."""
    found: dict[str, bytes | None] = {}
    for path, content in files.items():
        parts = parts_of(path)
        if len(parts) == 0 or (len(parts) == 1 and parts[0].casefold() in _OWN):
            raise InvalidPathError(f"{path}: name a file such as 'code/run.py'; the prompt, the "
                                   "readme and what skill.yaml says have arguments of their own"
                                   )  # fmt: skip
        if content is not None and not isinstance(content, str | bytes):
            raise ConfigError(f"files: {path}: give text or bytes")
        found[joined(parts)] = check_text(path, content).encode() if isinstance(
            content, str) else content  # fmt: skip
    return found


def _info(record: EntryRecord) -> EntryInfo:
    return EntryInfo(
        slug=record.slug,
        id=record.id,
        title=record.title,
        description=record.description,
        tags=tuple(record.tags),
        category=record.category,
        status=EntryStatus(record.status),
        rating=EntryRating(record.average, record.votes),
        source=EntrySource(record.source),
        origin_task_id=record.origin_task_id,
        created_at=record.created_at,
        updated_at=record.updated_at,
        version=record.version,
        problem=record.problem,
    )


def _entry(stored: StoredEntry, record: EntryRecord | None) -> Entry:
    skill = stored.skill
    own = (NAME, PROMPT, README)
    return Entry(
        slug=stored.slug,
        id=record.id if record and record.version else skill.id or stored.slug,
        title=title_of(stored),
        description=skill.description,
        tags=skill.tags,
        category=skill.category,
        status=skill.status,
        rating=skill.rating,
        source=skill.source,
        origin_task_id=skill.origin_task_id,
        created_at=skill.created_at or datetime.fromtimestamp(stored.made / 1e9, UTC),
        updated_at=skill.updated_at or datetime.fromtimestamp(stored.changed / 1e9, UTC),
        version=stored.version,
        prompt=text_of(stored, PROMPT),
        readme=text_of(stored, README),
        files=tuple(
            EntryFile(path, len(data))
            for path, data in sorted(stored.files.items())
            if path not in own
        ),
    )
