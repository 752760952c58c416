"""Restore a bundle into a workspace, all or nothing."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from kbkit.bundles import signing
from kbkit.bundles.placing import LOCK, Placement, settle
from kbkit.bundles.reader import BundleReader
from kbkit.errors import BundleError, ConfigError, ImpossibleError, KbkitError
from kbkit.ingest.cutting import chunk_id
from kbkit.models import Image, Progress, Restoration
from kbkit.progress import OnProgress
from kbkit.recipes import KnowledgeBaseSpec, parse_source
from kbkit.sources.images import kept_image
from kbkit.stores.catalog import bundled, knowledge_bases
from kbkit.stores.catalog.restoring import Restorer
from kbkit.stores.stores import Stores

_OWN = frozenset({"static", "multilingual", "rules", "none"})
"""Embedders and annotators that use only kbkit's own code and no network."""


def restore_bundle(
    stores: Stores,
    path: str | Path,
    *,
    name: str,
    key_file: str | Path | None,
    trust: bool,
    paths: bool = True,
    tell: OnProgress,
) -> Restoration:
    """Restore a bundle."""
    began = time.monotonic()
    trust = trust or key_file is not None

    def may_read(spec: Mapping[str, Any]) -> bool:
        return trust and (paths or not spec.get("path"))

    with BundleReader(Path(path)) as bundle:
        if key_file is not None:
            signing.verify(bundle.signature, bundle.manifest_bytes, key_file)
        _check(bundle, name, trust)
        images = bundle.names("images")
        for each in images:  # before anything is stored
            _image(bundle, each)
        with stores.locks.hold(LOCK, wait=0, task="restoring a bundle"):
            settle(stores)  # what was killed before
            for each in images:  # which nobody sees before a document shows them
                stores.images.add(_image(bundle, each))
            files = Placement(bundle, stores)
            with files.ready(), stores.database.write() as transaction:
                restorer = Restorer(
                    transaction, bundle.rows, chunk_id=chunk_id, name=name, enabled=may_read
                )
                came = restorer.run()
                files.put(transaction)
        rows = bundle.rows("sources")
        shut = sum(row["enabled"] and not may_read(row["spec"]) for row in rows)
    with stores.database.read() as transaction:
        ids = [knowledge_bases.get(transaction, each.name).id for each in came]
    for kb_id in ids:
        with suppress(KbkitError):  # what fails is done when it is wanted
            stores.vectors.apply(kb_id, lambda done: tell(Progress("index", done)))
    seconds = round(time.monotonic() - began, 3)
    return Restoration(str(path), came, tuple(files.placed), tuple(files.kept), shut, seconds)


def _check(bundle: BundleReader, name: str, trust: bool) -> None:
    """Check that a bundle's knowledge bases may be stored."""
    told = bundle.manifest
    if told.revision > bundled.REVISION:
        raise BundleError(
            f"{bundle.path}: made by a newer kbkit ({told.kbkit[:20]}, catalog revision "
            f"{told.revision[:20]}, and this one knows {bundled.REVISION}); upgrade kbkit; nothing "
            "was changed"
        )
    if told.revision != bundled.REVISION:
        raise BundleError(
            f"{bundle.path}: made by an older kbkit ({told.kbkit[:20]}); restore it with that one, "
            "and open the workspace with this one; nothing was changed"
        )
    if name and len(told.knowledge_bases) != 1:
        raise ImpossibleError(
            f"{bundle.path}: holds {len(told.knowledge_bases)} knowledge bases, and a name can be "
            "given to one"
        )
    names = []
    for row in bundle.rows("knowledge_bases"):
        try:
            names.append(row["name"])
            spec = KnowledgeBaseSpec.model_validate(row["config"])
        except (ValidationError, ValueError, TypeError, KeyError, RecursionError):
            raise BundleError(
                f"{bundle.path}: a knowledge base is configured in a way that this kbkit does not "
                "know; nothing was changed"
            ) from None
        foreign = [] if trust else _foreign(spec)
        if foreign:
            raise BundleError(
                f"{bundle.path}: {str(row['name'])[:80]} uses {', '.join(foreign)}, which may run "
                "code or ask services; nothing was changed; restore it with --trust if you trust "
                "who made it, or with --verify and their key"
            )
    if sorted(map(str, names)) != sorted(told.knowledge_bases):
        raise BundleError(
            f"{bundle.path}: holds other knowledge bases than it says; nothing was changed"
        )
    for row in bundle.rows("sources"):
        try:
            parse_source(row["spec"])
        except (ConfigError, TypeError, KeyError, RecursionError):
            raise BundleError(
                f"{bundle.path}: a source is described in a way that this kbkit does not know; "
                "nothing was changed"
            ) from None


def _image(bundle: BundleReader, name: str) -> Image:
    """A picture, which draws and does nothing else."""
    found = kept_image(bundle.read(f"images/{name}"))
    if found is None or found.name != name:
        raise BundleError(f"{bundle.path}: images/{name}: is no picture; nothing was changed")
    return found


def _foreign(spec: KnowledgeBaseSpec) -> list[str]:
    found: list[str] = []
    parts: tuple[Any, ...] = (spec.embedding, spec.card_embedding, spec.annotation)
    for part in parts:
        if part is None or part.type in _OWN:
            continue
        if part.type != "onnx" or part.model is not None or part.tokenizer is not None:
            names = (getattr(part, key, None) for key in ("llm", "model", "name", "tokenizer"))
            found.append(next(filter(None, names), part.type))
    if spec.expand is not None:
        found.append(spec.expand.llm)
    found += [each.path for each in spec.retrieval.postprocessors]
    return [ascii(each)[1:80].rstrip("'") for each in found]
