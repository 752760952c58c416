"""Bundles that a server makes, and restores."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO
from uuid import uuid4

from kbkit.client.calls import LONG, Request, Steps, reads_nothing, steps, url
from kbkit.client.collections import KNOWLEDGE
from kbkit.client.subjects import names
from kbkit.client.work import OnProgress, worked
from kbkit.errors import BundleError, ConflictError
from kbkit.models import BundleArchive, BundleInfo, Restoration


class BundleCalls:
    """How knowledge bases of a workspace go elsewhere; see `kbkit.Workspace`."""

    @steps
    def bundle(
        self,
        place: str | Path,
        *,
        kbs: Sequence[str] | None = None,
        sign: str | Path | None = None,
        on_progress: OnProgress | None = None,
    ) -> Steps[BundleInfo]:
        """Have the server write knowledge bases into one file, and fetch it to this machine.

        It is signed here: the key stays where it is.
        """
        from kbkit.bundles import signing
        from kbkit.bundles.writer import NewFile, bundle_path

        began = time.monotonic()
        if sign is not None:
            signing.private_key(sign)
        path = bundle_path(place)
        body = {"kbs": names(kbs), "wait": on_progress is None}
        found = yield from worked(
            BundleArchive, _posting("bundles", json=body, timeout=60.0), on_progress=on_progress
        )
        if found is None:
            raise ConflictError("the bundle was ended at the server; make it again")
        with NewFile(path) as file:
            at = url(f"{KNOWLEDGE}/bundles/{{}}", found.archive)
            yield Request("GET", at, reads_nothing, timeout=LONG, into=file)
            if sign is not None:
                file.sign(partial(signing.sign, key_file=sign))
            file.finish()
        return BundleInfo(
            str(path), found.knowledge_bases, found.documents, found.chunks, path.stat().st_size,
            found.sha256, sign is not None, found.skipped, round(time.monotonic() - began, 3),
        )  # fmt: skip

    @steps
    def restore(
        self,
        path: str | Path,
        *,
        name: str = "",
        verify: str | Path | None = None,
        trust: bool = False,
        on_progress: OnProgress | None = None,
    ) -> Steps[Restoration]:
        """Send a bundle of this machine to the server, which stores all of it or nothing.

        Sources that read the server's disk stay disabled, even of somebody trusted.
        """
        from kbkit.bundles import signing

        form = {"name": name, "trust": str(bool(trust)).lower()}
        form |= {"wait": str(on_progress is None).lower()}
        if verify is not None:
            form["verify"] = signing.public_pem(verify)
        fields = [(key, (None, value)) for key, value in form.items() if value]
        with _opened(path) as file:
            parts = [*fields, ("bundle", ("bundle.zip", file))]
            request = _posting("restore", files=parts, timeout=LONG)
            found = yield from worked(Restoration, request, on_progress=on_progress)
        if found is None:
            raise ConflictError("the restoration was ended at the server; restore the bundle again")
        return replace(found, bundle=str(path))


def _opened(path: str | Path) -> BinaryIO:
    try:
        return Path(path).open("rb")
    except OSError as error:
        raise BundleError(f"{path}: cannot be read ({error.strerror})") from error


def _posting(work: str, **asked: Any) -> Request[None]:
    """Asks for work, whose answer may be sent for twice."""
    headers = {"Idempotency-Key": uuid4().hex}
    return Request("POST", f"{KNOWLEDGE}/{work}", reads_nothing, headers=headers, **asked)
