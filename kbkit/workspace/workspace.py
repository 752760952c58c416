"""Workspace: a folder of knowledge bases. The only place that chooses concrete classes."""

from __future__ import annotations

import builtins
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kbkit import models
from kbkit.embedding import Embedders
from kbkit.errors import ConflictError, FilesError, KbkitError
from kbkit.knowledge_base import KnowledgeBase, Resources, handle_of
from kbkit.knowledge_base.handle import check_new_name, new_knowledge_base
from kbkit.models.values import BUILT_IN, ENTRIES, FILES, check_match
from kbkit.recipes import AnyEmbedding, KnowledgeBaseSpec, parse_embedding
from kbkit.retrieval.context import Finder
from kbkit.runtime.config import Settings
from kbkit.runtime.engine import LOCAL, open_engine
from kbkit.runtime.progress import OnProgress, progress_bar
from kbkit.runtime.validation import check_text, explain_calls
from kbkit.stores.catalog import knowledge_bases, outbox
from kbkit.stores.catalog.bundled import JOURNAL
from kbkit.stores.catalog.database import Transaction
from kbkit.stores.stores import Stores
from kbkit.workspace.doctor import WorkspaceChecks

if TYPE_CHECKING:
    import pandas as pd

    from kbkit.entries.entries import Entries
    from kbkit.files.files import Files
    from kbkit.graph.graph import Graph


@explain_calls
class Workspace(WorkspaceChecks, AbstractContextManager["Workspace"]):
    """A folder of knowledge bases, opened for this process.

    Several processes may open one folder at once. A workspace may be used from several threads, and
    closes at the end of a ``with`` block.
    """

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        settings: Settings | None = None,
        stores: Stores | None = None,
        engine: str = LOCAL,
    ) -> None:
        """Open a workspace; create its folder if missing."""
        settings = settings or Settings.load()
        self._engine = open_engine(engine)
        self._stores = stores or Stores.open(Path(path or settings.workspace).absolute(), settings)
        attachments = {ENTRIES: self._files_of_entry}
        self._resources = Resources(
            self._stores, settings, Embedders(self._engine), self._engine, attachments
        )
        self._knowledge_bases: dict[str, KnowledgeBase] = {}
        self._named_at: dict[str, tuple[int, KnowledgeBase]] = {}
        self._stores.vectors.sweep()  # finishes a killed deletion
        if (self.path / JOURNAL).exists():
            from kbkit.bundles.bundling import settle_alone

            settle_alone(self._stores)
        for _, content in self._folders():
            with suppress(KbkitError, OSError), progress_bar(None) as notify:  # `sync` reports it
                content._index.level(wait=0, on_progress=notify)  # unless another process does

    @cached_property
    def graph(self) -> Graph:
        """Entities of its knowledge bases and their relations; see `Graph`."""
        from kbkit.graph.graph import Graph

        return Graph(self._stores, self._resources.settings.rater)

    @cached_property
    def files(self) -> Files:
        """Folders and files of text that agents and people write; see `Files`."""
        from kbkit.files.files import open_files

        return open_files(self._stores, lambda: self._built_in_kb(FILES))

    @cached_property
    def entries(self) -> Entries:
        """Reusable solutions with votes; see `Entries`."""
        from kbkit.entries.entries import Entries

        return Entries(self._stores, self._resources.settings, lambda: self._built_in_kb(ENTRIES))

    def _folders(self) -> Iterator[tuple[str, Files | Entries]]:
        if (self.path / FILES).is_dir():
            yield FILES, self.files
        if (self.path / ENTRIES).is_dir():
            yield ENTRIES, self.entries

    def _files_of_entry(self, slug: str) -> dict[str, bytes]:
        from kbkit.entries.entries import skill_of

        with suppress(FilesError):
            return skill_of(self.entries, slug)
        return {}

    def create(
        self,
        name: str,
        *,
        description: str = "",
        spec: KnowledgeBaseSpec | None = None,
        embedding: AnyEmbedding | str | None = None,
    ) -> KnowledgeBase:
        """Create an empty knowledge base.

        Args:
            name: A slug: lower-case letters, digits and hyphens.
            description: Description of its topic.
            spec: Settings; the defaults suit English documentation.
            embedding: Embedding of chunks, as in a recipe, or a preset (``"minilm"``); by default
                that of the spec.

        Raises:
            InvalidNameError: The name is not a slug, or is reserved (``files``, ``entries``).
            ConflictError: The name is taken.
            ConfigError: The language is unknown.
            EmbedderError: The embedder cannot be loaded.
        """
        check_new_name(name)
        spec = spec or KnowledgeBaseSpec()
        if embedding is not None:
            parsed = parse_embedding(embedding) if isinstance(embedding, str) else embedding
            spec = spec.model_copy(update={"embedding": parsed})
        row = new_knowledge_base(self._resources, name, description, spec, "")
        return self._knowledge_base(row)

    def _built_in_kb(self, name: str) -> KnowledgeBase:
        """Return a built-in knowledge base; create it on first use."""
        if name not in self:
            with suppress(ConflictError):  # another process has created it
                new_knowledge_base(self._resources, name, BUILT_IN[name], KnowledgeBaseSpec(), name)
        kb = self[name]
        if kb.id != name:
            raise ConflictError(
                f"a knowledge base of yours is named {name!r}, which is the name of the one that "
                f"holds the {name} of a workspace; rename it: workspace.rename({name!r}, to=...)"
            )
        return kb

    def _finders(self, query: str, kbs: Container[str], *, all_kbs: bool) -> Mapping[str, Finder]:
        finders: dict[str, Finder] = {}
        if self._stores.other_home():
            return finders  # the folders are on another machine; only passages are found
        limit = self._resources.settings.max_entries
        if limit and ENTRIES in kbs:
            finders["entries"] = lambda: self.entries._findings(query, limit)
        if all_kbs and FILES in kbs:
            from kbkit.files.shown import root_folders

            finders["files"] = lambda: root_folders(self.files.roots())
        return finders

    def __getitem__(self, name: str) -> KnowledgeBase:
        changes = self._stores.database.changes()  # first, so that no change is missed
        cached = self._named_at.get(name)
        if cached is None or cached[0] != changes:
            row = self._stores.database.look_up(knowledge_bases.get, name)
            cached = self._named_at[name] = changes, self._knowledge_base(row)
        return cached[1]

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def list(self) -> list[models.KnowledgeBaseInfo]:
        """Return figures of all knowledge bases, ordered by name."""
        return self._stores.database.look_up(knowledge_bases.describe_all)

    def to_frame(self) -> pd.DataFrame:
        """Return figures of all knowledge bases as a DataFrame, indexed by name."""
        from kbkit.frames import workspace_frame

        return workspace_frame(self.list())

    def delete(self, name: str, *, forever: bool = False, if_match: str | None = None) -> None:
        """Move a knowledge base to the trash; `undelete` restores it.

        Args:
            name: Its name, which is free afterwards.
            forever: Delete documents, chunks, vectors, ratings and collection at once.
            if_match: Expected version (`KnowledgeBaseInfo.version`).

        Raises:
            NotFoundError: There is no such knowledge base.
            VersionConflictError: Its version differs from ``if_match``.
            ConflictError: It contains the workspace's files or entries.
        """
        with self._stores.database.write() as transaction:
            row = _own_row(transaction, name, if_match)
            if forever:
                knowledge_bases.delete(transaction, row.id)
            else:
                outbox.put_knowledge_base(transaction, row)
        self._knowledge_bases.pop(row.id, None)
        self._stores.snapshots.drop(row.id)
        self._stores.vectors.sweep()

    def undelete(self, name: str, *, to: str = "") -> KnowledgeBase:
        """Restore a deleted knowledge base with its content.

        Args:
            name: Its former name (finds the last one deleted), or its id.
            to: New name, if the old one is taken.

        Raises:
            NotFoundError: The trash has no such knowledge base; the message lists its content.
            ConflictError: The name is taken.
            InvalidNameError: The new name is not a slug.
        """
        if to:
            check_new_name(to)
        row = self._stores.database.commit(outbox.undelete_knowledge_base, name, to)
        self._stores.vectors.apply(row.id)
        return self._knowledge_base(row)

    def trash(self) -> builtins.list[models.DeletedKnowledgeBase]:
        """List knowledge bases that `undelete` can restore, the last deleted first."""
        return self._stores.database.look_up(outbox.knowledge_bases_in_trash)

    def bundle(
        self,
        place: str | Path,
        *,
        kbs: Sequence[str] | None = None,
        sign: str | Path | None = None,
        on_progress: OnProgress | None = None,
    ) -> models.BundleInfo:
        """Write knowledge bases into one portable file for `restore`.

        The file is a consistent snapshot, even while others write. It contains documents, chunks,
        vectors, ratings, annotations, the graph, sources and settings, but neither trash nor
        tokens. Equal content gives equal bytes.

        Args:
            place: A new file; or a folder, for a file named after the time.
            kbs: Names of knowledge bases; by default all, with files and entries: a backup.
            sign: A private Ed25519 key (PEM) to sign it with.
            on_progress: Called during the work; by default notebooks show a bar.

        Raises:
            NotFoundError: There is no such knowledge base.
            ImpossibleError: One of ``kbs`` contains the workspace's files or entries.
            BundleError: The file cannot be written.
            ConflictError: The file exists, or others keep writing files.
            ConfigError: The key is invalid.
            MissingExtraError: Signing needs ``kbkit[sign]``.
            WorkspaceError: Files and entries are on another machine.
        """
        from kbkit.bundles.bundling import make_bundle

        with progress_bar(on_progress) as report:
            return make_bundle(self._stores, place, kbs=kbs, key_file=sign, notify=report)

    def restore(
        self,
        path: str | Path,
        *,
        name: str = "",
        verify: str | Path | None = None,
        trust: bool = False,
        on_progress: OnProgress | None = None,
    ) -> models.Restoration:
        """Restore a bundle, all or nothing, without crawling or embedding.

        A missing knowledge base is restored with all its ids. An existing one gets missing
        ratings only. Files and entries never replace existing ones.

        Args:
            path: The file.
            name: New name of its only knowledge base.
            verify: The public Ed25519 key (PEM) of the required signer, who is trusted.
            trust: Trust the author: refreshes read its sources, and its models are used. Otherwise
                its sources are disabled, and other models or code than kbkit's are refused.
            on_progress: Called during the work; by default notebooks show a bar.

        Raises:
            BundleError: The file is not a bundle, is damaged or from another kbkit version, lacks
                the required signature, or needs trust.
            ConflictError: A name is taken or in the trash, settings differ, or another process
                restores now.
            WorkspaceError: The workspace cannot be written.
        """
        from kbkit.bundles.bundling import restore_bundle

        if name:
            check_new_name(name)
        with progress_bar(on_progress) as report:
            restoration = restore_bundle(
                self._stores, path, name=name, key_file=verify, trust=trust, notify=report
            )
        for _, content in self._folders():
            content.sync()
        return restoration

    def rename(self, name: str, *, to: str, if_match: str | None = None) -> KnowledgeBase:
        """Rename a knowledge base; everything else stays.

        Args:
            name: Its name.
            to: New name.
            if_match: Expected version (`KnowledgeBaseInfo.version`).

        Raises:
            NotFoundError: There is no such knowledge base.
            VersionConflictError: It has changed.
            ConflictError: The new name is taken.
            InvalidNameError: The new name is not a slug.
        """
        check_new_name(to)
        with self._stores.database.write() as transaction:
            row = _own_row(transaction, name, if_match)
            knowledge_bases.rename(transaction, row.id, to)
        renamed = self[to]
        handle_of(renamed).name = to
        return renamed

    def describe(
        self, name: str, *, description: str, if_match: str | None = None
    ) -> KnowledgeBase:
        """Change the description of a knowledge base, until the next build of its recipe.

        Args:
            name: Its name.
            description: Description of its topic.
            if_match: Expected version (`KnowledgeBaseInfo.version`).

        Raises:
            NotFoundError: There is no such knowledge base.
            VersionConflictError: Its version differs from ``if_match``.
        """
        text = " ".join(check_text("description", description).split())
        with self._stores.database.write() as transaction:
            row = knowledge_bases.get(transaction, name)
            check_match(name, if_match, row.revision)
            knowledge_bases.update(transaction, row.id, description=text, config=row.config)
            knowledge_bases.touch(transaction, row.id)
        return self[name]

    def __getattr__(self, name: str) -> Any:
        if name in ("open", "get", "load", "kb", "knowledge_base"):
            raise AttributeError(
                f"a workspace has no {name!r}: write workspace['name'] for a knowledge base, "
                "and workspace.create('name') for a new one"
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def close(self) -> None:
        """Close the workspace."""
        self._stores.close()
        self._engine.close()

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Workspace {str(self.path)!r}>"

    def _repr_html_(self) -> str:
        from kbkit.frames import collection_html

        return collection_html(repr(self)[1:-1], models.KnowledgeBaseInfo, self.list(), None)

    def _knowledge_base(self, row: knowledge_bases.KnowledgeBaseRow) -> KnowledgeBase:
        """Return the object of a knowledge base, one each, so that its data is loaded once."""
        if row.id not in self._knowledge_bases:
            self._knowledge_bases[row.id] = KnowledgeBase(self._resources, row)
        return self._knowledge_bases[row.id]


def _own_row(
    transaction: Transaction, name: str, if_match: str | None
) -> knowledge_bases.KnowledgeBaseRow:
    row = knowledge_bases.get(transaction, name)
    check_match(name, if_match, row.revision)
    if row.id in BUILT_IN:
        raise ConflictError(
            f"{name}: holds the {row.id} of this workspace and belongs to them; delete {row.id} "
            f"one by one, or the folder `{row.id}`"
        )
    return row


def stores_of(workspace: Workspace) -> Stores:
    return workspace._stores


def settings_of(workspace: Workspace) -> Settings:
    return workspace._resources.settings
