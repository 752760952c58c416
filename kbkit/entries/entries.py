"""The entries of a workspace."""

import builtins
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, BinaryIO

from kbkit import models
from kbkit.entries import agent_skills, folders
from kbkit.entries.folders import NAME
from kbkit.entries.index import EntryIndex
from kbkit.entries.learning import EntriesForAgents, learn_finished
from kbkit.entries.skill_file import check_values, edit_yaml, new_skill
from kbkit.entries.store import PROMPT, README, EntryStore, check_files, entry_of, info_of, renewal
from kbkit.errors import ConfigError, MissingPathError
from kbkit.files.index import saying_done
from kbkit.files.paths import join_parts, parts_of
from kbkit.files.store import check_version
from kbkit.ingest.pipeline import Stop
from kbkit.knowledge_base import KnowledgeBase
from kbkit.models.values import ENTRIES
from kbkit.runtime.config import Settings
from kbkit.runtime.progress import OnProgress, progress_bar
from kbkit.runtime.validation import check_integer, check_member, check_text, explain_calls
from kbkit.stores.catalog.indexed_files import list_entries
from kbkit.stores.stores import Stores

SORTS = ("rating", "updated", "title")
_TICK = timedelta(microseconds=1)
_ARGUMENTS = ("title", "description", "tags", "category", "status", "prompt", "readme")


@explain_calls
class Entries(EntriesForAgents):
    """Reusable solutions, each a folder with a ``skill.yaml``; ``workspace.entries``.

    Editors and git may change them. Several processes may read, write and vote at once: readers see
    the old or the new state, and no vote is lost.
    """

    def __init__(
        self, stores: Stores, settings: Settings, knowledge_base: Callable[[], KnowledgeBase]
    ) -> None:
        stores.require_home()
        self._settings = settings
        self._store = EntryStore(stores.folder / ENTRIES, stores.locks)
        self._index = EntryIndex(self._store, stores, knowledge_base)

    @property
    def path(self) -> Path:
        """Folder that contains the entries."""
        return self._store.root

    def read(self, slug: str) -> models.Entry:
        """Return an entry with prompt, readme, votes and names of other files.

        Raises:
            MissingPathError: There is no such entry.
            EntryFormatError: Its ``skill.yaml`` is invalid; names line and column.
        """
        stored = self._store.read_entry(slug)
        return entry_of(stored, self._index.records().get(slug))

    def list(
        self,
        *,
        status: str | models.EntryStatus | None = None,
        category: str | None = None,
        tag: str | None = None,
        text: str = "",
        sort: str = "rating",
        limit: int | None = 50,
        offset: int = 0,
    ) -> models.EntryPage:
        """List entries without their text.

        Args:
            status: ``active``, ``draft`` or ``deprecated``; by default any.
            category: Category, in any case.
            tag: Tag, in any case.
            text: Text that entries contain, in any case.
            sort: ``rating`` (best first, damped for few votes), ``updated`` (last first) or
                ``title``.
            limit: Maximum number; ``None`` for all.
            offset: Number of entries to skip.

        Raises:
            ConfigError: An argument is wrong.
        """
        self._index.level(on_progress=lambda _: None)
        if sort not in SORTS:
            raise ConfigError(f"sort={sort!r}: choose from {', '.join(SORTS)}")
        limit = None if limit is None else check_integer("limit", limit, 1)
        start = check_integer("offset", offset, 0)
        if status is not None:
            status = check_member("status", status, models.EntryStatus).value
        records = self._index.look_up(
            list_entries,
            status=status,
            category=None if category is None else check_text("category", category),
            tag=None if tag is None else check_text("tag", tag),
            text=check_text("text", text),
            sort=sort,
        )
        end = None if limit is None else start + limit
        infos = tuple(map(info_of, records[start:end]))
        return models.EntryPage(infos, len(records), start)

    def open(self, slug: str, path: str) -> BinaryIO:
        """Open a file of an entry as a binary file; used as a ``with`` block.

        Args:
            slug: Slug of the entry.
            path: Path within the entry, such as ``code/run.py``.

        Raises:
            MissingPathError: There is no such entry, or no such file in it.
            IsFolderError: It is a folder.
            PathOutsideError: The path is outside the entry.
        """
        return self._store.open(join_parts((folders.check_slug(slug), *parts_of(path))))

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
        status: str | models.EntryStatus = models.EntryStatus.ACTIVE,
        files: Mapping[str, str | bytes] | None = None,
    ) -> models.Entry:
        """Write a new entry.

        Args:
            title: One line.
            slug: Name of its folder; by default made from the title.
            description: Its purpose, which search uses.
            prompt: Instructions for an agent.
            readme: Readme for people.
            tags: Free labels.
            category: Its domain.
            status: ``active``, ``draft`` or ``deprecated``.
            files: Other files by path within the entry, such as ``code/run.py``.

        Raises:
            ConfigError: An argument is wrong; the message begins with its name.
            InvalidPathError: The slug or a path is invalid.
            PathExistsError: The slug is taken.
        """
        values, texts = _check(title, description, tags, category, status, prompt, readme)
        extras = {path: data for path, data in check_files(files or {}).items() if data is not None}
        if check_text("slug", slug):
            folders.check_slug(slug)
        with self._store.hold_lock():
            used_slugs = {each.name.casefold() for each in self.path.glob("*")}
            new_slug = slug or folders.slug_of(values["title"], used_slugs)
            ids = self._index.ids()
            values |= {"source": models.EntrySource.MANUAL, **renewal(None, new_slug, ids)}
            values["id"] = folders.unique(new_slug, ids.values())  # not that of a deleted entry
            written = {name: text for name, text in texts.items() if text}
            self._store.place(new_slug, {NAME: new_skill(values).encode(), **written, **extras})
        return self._update_index(new_slug)

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
        status: str | models.EntryStatus | None = None,
        files: Mapping[str, str | bytes | None] | None = None,
        if_match: str | None = None,
    ) -> models.Entry:
        """Change an entry; omitted values and comments in its ``skill.yaml`` stay.

        Args:
            slug: Slug of the entry.
            title: See `create`, also for the following arguments.
            description: Its purpose.
            prompt: Instructions for an agent.
            readme: Readme for people.
            tags: Free labels.
            category: Its domain.
            status: ``active``, ``draft`` or ``deprecated``.
            files: Files to write, by path within the entry; ``None`` deletes one.
            if_match: Expected version (`EntryInfo.version`); votes do not change it.

        Raises:
            MissingPathError: There is no such entry, or a file to delete does not exist.
            ConfigError: An argument is wrong; the message begins with its name.
            VersionConflictError: Another change came first.
            EntryFormatError: Its ``skill.yaml`` cannot be read or changed.
        """
        values, texts = _check(title, description, tags, category, status, prompt, readme)
        extras = check_files(files or {})
        with self._store.hold_lock():
            stored = self._store.read_entry(slug)
            check_version(slug, stored.version, if_match)
            for path, data in extras.items():
                if data is None and path not in stored.files:
                    raise MissingPathError(f"{slug}/{path}: no such file or folder")
            new_files = {**texts, **extras}.items()
            changed = {path: data for path, data in new_files if stored.files.get(path) != data}
            text = edit_yaml(stored.skill.text, values)
            if changed or text != stored.skill.text:
                text = edit_yaml(text, {"updated_at": datetime.now(UTC)})
                self._store.write_all(slug, {**changed, NAME: text.encode()}, stored.files)
        return self._update_index(slug)

    def rename(self, slug: str, *, to: str) -> models.Entry:
        """Rename an entry; id, votes and relations stay.

        Raises:
            MissingPathError: There is no such entry.
            InvalidPathError: The new slug is invalid.
            PathExistsError: It is taken.
        """
        folders.check_slug(to)
        with self._store.hold_lock():
            skill = self._store.read_entry(slug).skill
            record = self._index.records().get(slug)
            entry_id = skill.id or (record.id if record else slug)
            # first, since it may fail on a full disk; alone it changes nothing
            self._store.write(f"{slug}/{NAME}", edit_yaml(skill.text, {"id": entry_id}).encode())
            self._store.move(slug, to)
        return self._update_index(to)

    def rate(self, slug: str, score: int, *, rater: str = "") -> models.Entry:
        """Vote for an entry.

        Args:
            slug: Slug of the entry.
            score: 1 (useless) to 5 (exactly right).
            rater: Name of the voter; by default ``KBKIT_RATER`` or the login name.

        Raises:
            ConfigError: The score is not 1 to 5.
            MissingPathError: There is no such entry.
            EntryFormatError: Its ``skill.yaml`` or ``votes.jsonl`` cannot be read.
        """
        stars = check_integer("score", score, 1, 5)
        voter = " ".join(check_text("rater", rater or self._settings.rater).split())
        with self._store.hold_lock():
            votes, now = self._store.read_entry(slug).rating.votes, datetime.now(UTC)
            times = {vote.timestamp for vote in votes}
            while now in times:  # the identity of a vote includes its time
                now += _TICK
            self._index.add_votes(slug, [models.Vote(now, voter, stars)])
        return self._update_index(slug)

    def delete(self, slug: str, *, if_match: str | None = None) -> models.DeletedFile:
        """Move an entry to the trash; `undelete` restores it.

        Args:
            slug: Slug of the entry.
            if_match: Expected version.

        Raises:
            MissingPathError: There is no such entry.
            VersionConflictError: Another change came first.
            EntryFormatError: ``if_match`` is given, but the ``skill.yaml`` is invalid.
        """
        folders.check_slug(slug)
        with self._store.hold_lock():
            if if_match is not None:
                check_version(slug, self._store.read_entry(slug).version, if_match)
            self._store.require(slug)
            deleted = self._store.delete(slug, lambda _: {})
        with saying_done(slug):
            self._index.level()
        return deleted

    def undelete(self, slug: str, *, to: str = "") -> models.Entry:
        """Restore the last deleted or replaced entry of a slug.

        Args:
            slug: Its former slug, or its id in the trash.
            to: New slug; by default the former one.

        Raises:
            MissingPathError: The trash has no such entry.
            PathExistsError: The slug is taken.
        """
        if to:
            folders.check_slug(to)
        item, _ = self._store.undelete(slug, to)
        return self._update_index(item.path)

    def trash(self) -> builtins.list[models.DeletedFile]:
        """List entries that `undelete` can restore, the last first."""
        return self._store.trash()

    def sync(
        self, *, on_progress: OnProgress | None = None, stop: Stop = lambda: False
    ) -> models.EntrySyncReport:
        """Import changes made outside kbkit, and write votes of searches.

        Opening a workspace does so, too, and `kbkit watch` continuously. Entries with an invalid
        ``skill.yaml`` are reported; their last state stays. Votes on both sides of a git merge are
        combined.

        Args:
            on_progress: Called as entries are stored; by default notebooks show a bar.
            stop: Called often; true ends the work cleanly.

        Raises:
            ConflictError: Another process does the same for too long.
            EmbedderError: The embedder failed; stored entries stay.
        """
        self._store.sweep()
        with progress_bar(on_progress) as callback:
            wrong = learn_finished(self._index, self._settings.auto_learn)
            report = self._index.level(on_progress=callback, stop=stop)
        return replace(report, skipped=(*report.skipped, *wrong))

    def revision(self) -> str:
        """Return a text that changes with entries and votes; fast enough to poll."""
        return self._index.revision()

    def export_skills(
        self, folder: str | Path, *, slugs: Sequence[str] | None = None
    ) -> tuple[Path, ...]:
        """Write entries as Agent Skills, one folder each, without their votes.

        The prompt becomes ``SKILL.md``, code goes to ``scripts/``, artifacts to ``assets/``, the
        readme and long texts to ``references/``. Existing skills of the same names are replaced.

        Args:
            folder: Target folder; created if missing.
            slugs: Slugs of entries; all by default.

        Returns:
            The folders of the skills.

        Raises:
            MissingPathError: There is no entry of one of the slugs.
            EntryFormatError: An entry is invalid; nothing is written.
            PathExistsError: A name is taken, but not by a skill; nothing is written.
        """
        self._index.level(on_progress=lambda _: None)
        selected = sorted(self._index.records()) if slugs is None else dict.fromkeys(slugs)
        skills = {slug: skill_of(self, slug) for slug in selected}
        return agent_skills.write(Path(folder), skills, self.path)

    def import_skills(self, folder: str | Path) -> tuple[models.Entry, ...]:
        """Import Agent Skills, all or none: each creates or replaces the entry of its name.

        Votes of existing entries stay, and replaced files go to the trash.

        Args:
            folder: A skill, or a folder of skills.

        Raises:
            MissingPathError: The folder does not exist.
            EntryFormatError: A skill is invalid; names file and line.
            FilesError: A skill has links, or names that are invalid on some systems.
        """
        slugs = agent_skills.import_skills(self._index, Path(folder))
        self._index.level()
        return tuple(map(self.read, slugs))

    def __repr__(self) -> str:
        return f"<Entries in {str(self.path)!r}>"


def _check(*arguments: Any) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return values for ``skill.yaml`` and files of text, without omitted ones."""
    named = zip(_ARGUMENTS, arguments, strict=True)
    values = check_values(**{key: each for key, each in named if each is not None})
    names = {"prompt": PROMPT, "readme": README}
    texts = {name: values.pop(key).encode() for key, name in names.items() if key in values}
    return values, texts


def skill_of(entries: Entries, slug: str) -> dict[str, bytes]:
    return agent_skills.skill_files(entries._store.read_entry(slug))
