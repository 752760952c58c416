"""What a task left in its folder ``.knowledge`` becomes an entry."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kbkit.entries.folders import read_folder, refuse_credentials
from kbkit.entries.index import EntryIndex
from kbkit.entries.skill_file import NAME, SkillFile, edited, read_skill
from kbkit.entries.slugs import slug_fault, slug_of, unique
from kbkit.entries.store import PROMPT, README, EntryStore, StoredEntry, says_else
from kbkit.entries.votes import with_rating
from kbkit.errors import ConflictError, EntryFormatError, FilesError, MissingPathError
from kbkit.models import EntryRating, EntrySource, Problem
from kbkit.stores.catalog import entries as catalog
from kbkit.stores.locks import Locks
from kbkit.stores.stores import Stores

FOLDER = ".knowledge"
"""What a task leaves is in a folder of this name."""
_SETTLED = 2.0
"""Seconds for which nothing in it has changed once a task has finished."""

LEARNING_PROMPT = f"""\
## What you learned

When the task is done, and only if it worked, leave what would solve such a task again in the
folder `{FOLDER}/` of your working folder, for others who will be given tasks of this kind:

- `{PROMPT}`: how to do it, as you would tell a colleague who has not seen this task: the steps,
  what to look out for, what did not work and why. General: no names, paths or data of this task.
- `{README}`: in a few lines, what it is for and when not to use it.
- `code/`: scripts that can be run again, with their arguments explained. `artifacts/`: small files
  they need (templates, schemas, samples). Leave out what can be fetched or made again.
- `{NAME}`, written last, since it says that the rest is complete:

```yaml
title: Parse access logs of nginx
description: Turns access logs into a table of requests. Use it when logs are to be counted.
tags: [logs, nginx, python]
category: data
status: active
```

Title and description decide whether it is found again: name what it does and when to use it, in
the words of someone who asks for it. Write no keys, passwords or personal data into any file:
a folder with such is not taken. If you used a solution that you were given and it had to be
changed, keep its title, so that yours takes its place.
"""


def knowledge_folder(folder: Path) -> Path:
    """The folder that a task left: this one, or ``.knowledge`` in it.

    Raises:
        MissingPathError: There is neither.
    """
    place = folder.expanduser().absolute()
    if place.name != FOLDER and (place / FOLDER).is_dir():
        place /= FOLDER
    if not place.is_dir():
        raise MissingPathError(f"{folder}: there is no such folder")
    if not (place / NAME).exists():
        raise MissingPathError(
            f"{place}: has no {NAME}; name a folder `{FOLDER}` that a task left, or one with it"
        )
    return place


def read_knowledge(place: Path, locks: Locks) -> tuple[SkillFile, dict[str, bytes]]:
    """What a task left, once it has been checked.

    Args:
        place: The folder.
        locks: Of the workspace.

    Raises:
        EntryFormatError: Its ``skill.yaml`` cannot be read, says no title, or nothing is to learn.
        SecretsError: A file holds what looks like a key.
        FilesError: A file is a link, or may not be called so.
    """
    files = read_folder(place, locks)
    if NAME not in files:
        raise EntryFormatError(f"{place / NAME}: is no file that can be read")
    try:
        skill = read_skill(files[NAME])
    except EntryFormatError as error:
        raise EntryFormatError(f"{place}/{error}", error.line, error.column) from None
    if not skill.title:
        raise EntryFormatError(f"{place / NAME}: says no title; write a line 'title: ...'", 1, 1)
    if not any(data.strip() for path, data in files.items() if path != NAME):
        raise EntryFormatError(f"{place}: has nothing to learn; write {PROMPT}")
    refuse_credentials(place, files)
    return skill, files


class Learner:
    """Makes entries of what tasks left.

    Args:
        store: The entries.
        index: What is known of them.
        stores: Of the workspace.
    """

    def __init__(self, store: EntryStore, index: EntryIndex, stores: Stores) -> None:
        self._store = store
        self._index = index
        self._database = stores.database
        self._locks = stores.locks

    def learn(self, place: Path, task_id: str) -> str:
        """Copy what a task left into the entry of its slug, and give that.

        Args:
            place: The folder that the task left.
            task_id: Of the task; by default what the folder says.

        Raises:
            ConflictError: A person wrote the entry of that slug.
            FilesError: It cannot be learned; nothing is changed.
        """
        skill, files = read_knowledge(place, self._locks)
        slug = skill.id if skill.id and not slug_fault(skill.id) else slug_of(skill.title)
        with self._store.locked():
            ids = self._index.ids()
            slug = next((each for each, known_as in ids.items() if known_as == slug), slug)
            there = self._store.look(slug) is not None
            before = self._store.read_entry(slug) if there else None
            if before is not None and before.skill.source is not EntrySource.AUTO:
                raise ConflictError(
                    f"{slug}: a person wrote the entry of that slug; give what the task left "
                    f"another title in {place / NAME}, or rename the entry"
                )
            files[NAME] = _skill_text(skill, before, slug, ids, task_id).encode()
            if before is None or says_else(before, files):
                self._store.place(slug, files, replace=before is not None)
        return slug

    def learn_finished(self, folder: Path | None) -> list[Problem]:
        """Learn what finished tasks left, each state once; gives what cannot be learned.

        Args:
            folder: Of tasks, a folder each; ``None`` for none.
        """
        if folder is None:
            return []
        known = self._learned()
        for task, place, digest in finished(folder):
            if str(place) in known and known[str(place)].digest == digest:
                continue
            slug = problem = ""
            try:
                slug = self.learn(place, task)
            except (FilesError, ConflictError) as error:
                problem = str(error)
            with self._database.write() as transaction:
                catalog.note_learned(transaction, str(place), digest, slug, problem)
        return [Problem(each, row.problem) for each, row in self._learned().items() if row.problem]

    def _learned(self) -> Mapping[str, Any]:
        with self._database.read() as transaction:
            return catalog.learned(transaction)


def _skill_text(
    skill: SkillFile,
    before: StoredEntry | None,
    slug: str,
    ids: Mapping[str, str],
    task_id: str,
) -> str:
    """What the task said, and what is not for it to say: votes, times, and who wrote it."""
    now = datetime.now(UTC)
    known = before.skill if before is not None else None
    others = {known_as for other, known_as in ids.items() if other != slug}
    text = with_rating(skill.text, known.rating if known else EntryRating())
    return edited(
        text,
        {
            "id": (known.id if known else "") or unique(slug, others),
            "title": skill.title,
            "status": (known or skill).status.value,
            "source": EntrySource.AUTO.value,
            "origin_task_id": task_id or skill.origin_task_id,
            "created_at": (known.created_at if known else None) or now,
            "updated_at": now,
        },
    )


def finished(folder: Path) -> Iterator[tuple[str, Path, str]]:
    """Tasks in a folder that left something: name, place, and what identifies what it holds now.

    Args:
        folder: Of tasks, a folder each.
    """
    try:
        places = sorted(each / FOLDER for each in folder.iterdir() if not each.is_symlink())
    except OSError:
        return
    for place in places:
        state = hashlib.blake2b(digest_size=16)
        last = 0.0
        if place.is_symlink() or not (place / NAME).is_file():
            continue
        try:
            for path in sorted(place.rglob("*")):
                about = path.lstat()
                last = max(last, about.st_mtime)
                state.update(f"{path}\0{about.st_size}\0{about.st_mtime_ns}\n".encode(
                    errors="replace"))  # fmt: skip
        except OSError:
            continue  # it is being written
        if time.time() - last >= _SETTLED:
            yield place.parent.name, place, state.hexdigest()
