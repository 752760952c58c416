"""Find entries before a task, and learn from it afterwards."""

import hashlib
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from kbkit import errors
from kbkit.embedding.static import count_tokens
from kbkit.entries.folders import FOLDER, NAME, check_paths, read_knowledge, slug_fault, slug_of
from kbkit.entries.index import EntryIndex
from kbkit.entries.skill_file import VOTES, SkillFile, edit_yaml, located, read_skill, without_votes
from kbkit.entries.store import PROMPT, README, info_of, renewal
from kbkit.files.index import saying_done
from kbkit.models import (
    Context,
    ContextPiece,
    Entry,
    EntryInfo,
    EntryRating,
    EntrySource,
    EntryStatus,
    Problem,
)
from kbkit.models.ratings import MAX_QUERY_LENGTH
from kbkit.models.values import pluralize, quotation_mark
from kbkit.retrieval.context import MIN_TOKENS, ContextFact, Findings
from kbkit.retrieval.delimiting import cut, fence, instructions, one_line
from kbkit.runtime.config import Settings
from kbkit.runtime.validation import check_integer, check_text, explain_calls
from kbkit.stores.catalog import indexed_files as catalog
from kbkit.stores.catalog.indexed_files import PRIOR_SCORE, PRIOR_VOTES, EntryRecord

_RULES: tuple[tuple[str, str], ...] = (
    ("a private key", r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----"),
    ("an access key of AWS", r"\b(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}\b"),
    (
        "a secret key of AWS",
        r"(?i:aws_?secret_?(?:access_?)?key)[\"']?\s*[=:]\s*[\"']?[0-9A-Za-z/+]{40}\b",
    ),
    ("a token of GitHub", r"\b(?:gh[opsur]_[0-9A-Za-z]{36,}|github_pat_[0-9A-Za-z_]{22,})"),
    ("a token of GitLab", r"\bglpat-[0-9A-Za-z_-]{20,}"),
    ("a token of Slack", r"\bxox[abeoprs]-[0-9A-Za-z-]{10,}|\bxapp-[0-9]-[0-9A-Za-z-]{10,}"),
    ("a webhook of Slack", r"hooks\.slack\.com/services/T\w{6,}/B\w{6,}/\w{16,}"),
    ("a key of a language model's service", r"\bsk-(?:[a-z]{2,10}[0-9]{0,2}-)?[0-9A-Za-z_-]{20,}"),
    ("a key of Google", r"\bAIza[0-9A-Za-z_-]{35}"),
    ("a key of Stripe", r"\b[rs]k_(?:live|test)_[0-9A-Za-z]{16,}"),
    ("a token of Hugging Face", r"\bhf_[0-9A-Za-z]{30,}"),
    ("a token of npm", r"\bnpm_[0-9A-Za-z]{36}"),
    ("a token of PyPI", r"\bpypi-[0-9A-Za-z_-]{50,}"),
    ("a signed token", r"\beyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}"),
    (
        "a password in an address",
        r"\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@\"'<>]{1,100}:(?![<${*%]|x{3,}|pass|secret|\.{3})"
        r"[^\s/@\"'<>]{3,200}@[\w.-]",
    ),
    (
        "a password or a key",
        r"(?i:passw(?:or)?d|secret|token|api_?-?key|access_?key)\w{0,20}[\"']?\s{0,5}[=:]\s{0,5}"
        r"[\"'](?=[^\"'\s]{0,200}[0-9])(?=[^\"'\s]{0,200}[A-Za-z])[^\"'\s<>{}$]{16,200}[\"']",
    ),
)


def find_credential(data: bytes) -> tuple[str, int] | None:
    """Return kind and line (from 1) of a file's first likely key or password."""
    text = data.decode("latin-1")  # keys are ASCII, whatever else a file holds
    matches = [(match.start(), kind) for kind, rule in _RULES if (match := re.search(rule, text))]
    if not matches:
        return None
    at, kind = min(matches)
    return (kind, text.count("\n", 0, at) + 1)


_SETTLED = 2.0  # seconds without changes after which a task has finished

LEARNING_PROMPT = f"""\
## What you learned

When the task is done, and only if it worked, leave what would solve a similar task in the
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
a folder with any is refused. If you used a solution that you were given and it had to be
changed, keep its title, so that yours takes its place.
"""


def check_knowledge(place: Path, files: Mapping[str, bytes]) -> tuple[SkillFile, dict[str, bytes]]:
    """Check the result of a task; return it without votes."""
    task_files = {path: data for path, data in files.items() if path.casefold() != VOTES}
    if NAME not in task_files:
        raise errors.MissingPathError(f"{place}: has no file {NAME}")
    with located(f"{place}/"):
        skill = read_skill(task_files[NAME])
    if not skill.title:
        raise errors.EntryFormatError(
            f"{place / NAME}: has no title; add a line 'title: ...'", 1, 1
        )
    if not any(data.strip() for path, data in task_files.items() if path != NAME):
        raise errors.EntryFormatError(f"{place}: has nothing to learn; write {PROMPT}")
    for path, data in sorted(task_files.items()):
        if (credential := find_credential(data)) is not None:
            raise errors.SecretsError(
                f"{place / path}: line {credential[1]} has what looks like {credential[0]}; "
                "take it out, have it read from the environment, and learn the folder again"
            )
    return skill, task_files


def learn(index: EntryIndex, place: Path, uploads: Mapping[str, bytes], task_id: str) -> str:
    """Create or update an entry from the files of a task; return its slug."""
    skill, files = check_knowledge(place, uploads)
    slug = skill.id if skill.id and not slug_fault(skill.id) else slug_of(skill.title)
    with index.store.hold_lock():
        ids = index.ids()
        slug = next((name for name, id_ in ids.items() if id_ == slug), slug)
        before = index.store.existing(slug)
        if before is not None and before.skill.source is not EntrySource.AUTO:
            raise errors.ConflictError(
                f"{slug}: a person wrote the entry of that slug; give what the task left "
                f"another title in {place / NAME}, or rename the entry"
            )
        values = {
            "title": skill.title,
            "status": skill.status if before is None else before.skill.status,
            "source": EntrySource.AUTO,
            "origin_task_id": task_id or skill.origin_task_id,
            **renewal(before, slug, ids),
        }
        files[NAME] = edit_yaml(without_votes(skill), values).encode()
        index.store.renew(slug, files, before)
    return slug


def learn_finished(index: EntryIndex, folder: Path | None) -> list[Problem]:
    """Learn from finished tasks, each state once; return those that failed."""
    if folder is None:
        return []
    learned = index.look_up(catalog.list_learned)
    for task, place, digest in iter_finished(folder):
        if str(place) in learned and learned[str(place)].digest == digest:
            continue
        slug = problem = ""
        try:
            slug = learn(index, *read_knowledge(place), task)
        except (errors.FilesError, errors.ConflictError) as error:
            problem = str(error)
        index.database.commit(catalog.note_learned, str(place), digest, slug, problem)
    rows = index.look_up(catalog.list_learned)
    return [Problem(path, row.problem) for path, row in rows.items() if row.problem]


def iter_finished(folder: Path) -> Iterator[tuple[str, Path, str]]:
    try:
        places = sorted(each / FOLDER for each in folder.iterdir() if not each.is_symlink())
    except OSError:
        return
    for place in places:
        if place.is_symlink() or not (place / NAME).is_file():
            continue
        try:
            files = [(path, path.lstat()) for path in sorted(place.rglob("*"))]
        except OSError:
            continue  # it is being written
        if time.time() - max((each.st_mtime for _, each in files), default=0.0) >= _SETTLED:
            lines = [f"{path}\0{each.st_size}\0{each.st_mtime_ns}\n" for path, each in files]
            state = hashlib.blake2b("".join(lines).encode(errors="replace"), digest_size=16)
            yield place.parent.name, place, state.hexdigest()


NOTHING = "No entry fits; solve it from scratch."
_PASSAGES_PER_ENTRY = 4  # passages to search for each entry
_WEIGHT = 0.5  # share of the score that ratings can add or remove
# minimum share of the best score; minimum cosine without common words
_MIN_SHARE, _MIN_COSINE = 0.1, 0.35
_DESCRIPTION_TOKENS = 60
_FILES_TOKENS = 60
_TITLE_TOKENS = 60
_MAX_FILES = 12


class Found(NamedTuple):
    """An active entry that fits a prompt; ``lines`` show title, slug and stars; purpose; files."""

    record: EntryRecord
    score: float
    lines: tuple[str, ...]


@explain_calls
class EntriesForAgents(ABC):
    """Entries as agents find and leave them."""

    _settings: Settings
    _index: EntryIndex

    @abstractmethod
    def read(self, slug: str) -> Entry:
        """Return an entry."""

    def _update_index(self, slug: str) -> Entry:
        with saying_done(slug):
            self._index.level()
            return self.read(slug)

    def find(self, prompt: str, *, limit: int = 10) -> list[EntryInfo]:
        """Find active entries that fit a prompt, by relevance and rating, best first.

        Args:
            prompt: The task.
            limit: Maximum number of entries.

        Raises:
            ConfigError: The prompt is empty, or the limit is wrong.
        """
        matches = self._find(_check_prompt(prompt), check_integer("limit", limit, 1))
        return [info_of(each.record) for each in matches]

    def context(self, prompt: str, *, limit: int | None = None, max_tokens: int = 1_000) -> Context:
        """Return active entries that fit a prompt, as a short numbered list for an agent.

        Each has stars, purpose and files, between random marks; ordered by relevance and rating.
        `Workspace.context` combines the best of them with passages.

        Args:
            prompt: The task.
            limit: Maximum number; by default ``KBKIT_MAX_ENTRIES``, else 20.
            max_tokens: Maximum tokens of the text, 100 or more; see `Workspace.context`.

        Raises:
            ConfigError: The prompt is empty, or limit or budget is wrong.
        """
        task = _check_prompt(prompt)
        count = self._settings.max_entries if limit is None else check_integer("limit", limit, 1)
        budget = check_integer("max_tokens", max_tokens, MIN_TOKENS)
        start, mark = time.perf_counter(), quotation_mark()
        entries = self._find(task, count)
        remaining = budget - count_tokens(_block(len(entries), mark, "")) - 2
        pieces: list[ContextPiece] = []
        for number, entry in enumerate(entries, 1):
            first, *details = entry.lines
            text = "\n".join([f"{number}. {first}", *(f"   {line}" for line in details)])
            if (size := count_tokens(f"{text}\n")) > remaining:
                break
            remaining -= size
            pieces.append(ContextPiece(number, "entry", text, None, entry.record.slug, entry.score))
        if entries and not pieces:
            raise errors.ImpossibleError(
                f"max_tokens={budget}: too few for an entry; give twice as many"
            )
        listed = "\n".join(piece.text for piece in pieces)
        text = _block(len(pieces), mark, listed) if pieces else NOTHING
        seconds = time.perf_counter() - start
        return Context(task, text, tuple(pieces), count_tokens(text), budget, seconds)

    def learn(self, folder: str | Path | Mapping[str, bytes], *, task_id: str = "") -> Entry:
        """Create or update an entry from a task's folder ``.knowledge``.

        Its ``skill.yaml`` needs a title, from which the slug is made. Votes, status and times of an
        existing entry stay; replaced files go to the trash.

        Args:
            folder: ``.knowledge``, the task's folder that contains it, or its files by path.
            task_id: Name of the task.

        Raises:
            MissingPathError: There is no such folder, or no ``skill.yaml`` in it.
            EntryFormatError: The ``skill.yaml`` is invalid (names line and column), or the folder
                is too large.
            PathOutsideError: The folder contains links.
            SecretsError: A file contains a likely key or password; names the line.
            ConflictError: A person wrote the entry of that slug.
        """
        task = " ".join(check_text("task_id", task_id).split())
        if isinstance(folder, Mapping):
            place = Path(FOLDER)
            files = check_paths(place, folder)
        else:
            place, files = read_knowledge(Path(folder))
        return self._update_index(learn(self._index, place, files, task))

    def learning_prompt(self) -> str:
        """Return a section of a system prompt that asks an agent to write ``.knowledge``."""
        return LEARNING_PROMPT

    def _find(self, prompt: str, limit: int) -> list[Found]:
        self._index.level(on_progress=lambda _: None)
        records = self._index.records()
        usable = {
            slug: record
            for slug, record in records.items()
            if record.status == EntryStatus.ACTIVE.value and not record.problem
        }
        if not usable or not limit:
            return []
        passages = _PASSAGES_PER_ENTRY * (limit + len(records) - len(usable))
        hits = self._index.knowledge_base().search(prompt[:MAX_QUERY_LENGTH], limit=passages)
        scores: dict[str, float] = {}
        for hit in hits:
            if hit.uri in usable and (hit.parts.bm25 > 0 or hit.parts.cosine >= _MIN_COSINE):
                relevance = hit.score - hit.parts.rating
                scores[hit.uri] = max(scores.get(hit.uri, 0.0), relevance)
        min_score = _MIN_SHARE * max(scores.values(), default=0.0)
        weighted = {
            slug: score * (1 + _WEIGHT * rating_prior(usable[slug]))
            for slug, score in scores.items()
            if score >= min_score
        }
        best = sorted(weighted, key=lambda slug: (-weighted[slug], slug))[:limit]
        return [Found(usable[slug], weighted[slug], self._lines(usable[slug])) for slug in best]

    def _findings(self, query: str, limit: int) -> Findings:
        matches = self._find(query, limit)
        facts = [ContextFact(each.record.slug, each.lines, kind="entry") for each in matches]
        return Findings(facts=facts)

    def _lines(self, record: EntryRecord) -> tuple[str, ...]:
        rating = EntryRating(record.average, record.votes)
        votes = f" {rating.average:g} ({pluralize(rating.count, 'vote')})" if rating.count else ""
        title = cut(one_line(record.title), _TITLE_TOKENS)
        head = f"{title} ({record.slug}) {rating.stars}{votes}".strip()
        files = [
            item.path.removeprefix(f"{record.slug}/")
            for item in self._index.store.walk(record.slug)
            if not item.is_folder and not item.path.endswith((f"/{NAME}", f"/{VOTES}"))
        ]
        more = f" and {len(files) - _MAX_FILES} more" if len(files) > _MAX_FILES else ""
        names = one_line(", ".join(files[:_MAX_FILES]))
        listed = cut(f"files: {names}{more}", _FILES_TOKENS) if files else ""
        return tuple(
            filter(None, [head, cut(one_line(record.description), _DESCRIPTION_TOKENS), listed])
        )


def _check_prompt(prompt: str) -> str:
    if not (task := check_text("prompt", prompt).strip()):
        raise errors.ConfigError("prompt: is empty; describe the task")
    return task


def rating_prior(record: EntryRecord) -> float:
    """Return the prior of votes, -1 to 1, as in search.

    It is the distance of the Bayesian average, with five votes for the middle, from the middle.
    """
    return (record.average - PRIOR_SCORE) / 2 * record.votes / (record.votes + PRIOR_VOTES)


def _block(count: int, mark: str, text: str) -> str:
    opening = f"{pluralize(count, 'entry')}, best first: solutions for similar tasks."
    return f"{opening} {instructions(mark)}\n\n{fence(mark, 'entries', text)}"
