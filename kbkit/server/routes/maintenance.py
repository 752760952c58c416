"""Routes for runs, health and bundles of a workspace."""

from __future__ import annotations

import hashlib
from typing import Annotated, BinaryIO, Literal

from fastapi import File, Form, Path, Response, UploadFile
from pydantic import Field, WithJsonSchema

from kbkit.models import BundleArchive, Health, Restoration, Run
from kbkit.models.files import BUILT_IN
from kbkit.server.access import ADMIN, Caller, WorkspaceOf
from kbkit.server.parameters import MAX, Cursor, KbName, KbsQuery, Limit, Options, offset_page
from kbkit.server.responses import Paged, Wait
from kbkit.server.routes.bases import SLUG
from kbkit.server.routing import Routes, Work
from kbkit.server.tasks import KEY, UPLOAD, bundle_of, store_uploads
from kbkit.server.uploads import ConditionsOf, file_response, file_responses

routes = Routes("/api/knowledge", "maintenance")

ArchiveId = Annotated[str, Path(description="Id of a bundle.", min_length=1, max_length=64)]


class Examination(Options):
    """An examination."""

    wait: Wait = True


class NewBundle(Options):
    """Contents of a bundle."""

    kbs: Annotated[list[KbName], Field(max_length=MAX)] | None = None
    """Names of knowledge bases; by default the token's, or all with files and entries."""
    wait: Wait = True


@routes.get("/runs")
def list_runs(
    workspace: WorkspaceOf, caller: Caller, limit: Limit, kb: KbsQuery = None, cursor: Cursor = ""
) -> Paged[Run]:
    """List when sources were read, with duration and outcome, newest first."""
    names = caller.restrict(kb) if kb else caller.visible(workspace)
    return offset_page(workspace.runs(names), limit, cursor)


@routes.post("/doctor", ADMIN, work=Health)
def examine_workspace(body: Examination, caller: Caller, work: Work) -> Response:
    """Check the content of the workspace and list problems; repairs nothing."""
    caller.require_all_kbs()
    return work.start("doctor", {}, wait=body.wait)


@routes.post("/bundles", ADMIN, work=BundleArchive)
def make_bundle(body: NewBundle, workspace: WorkspaceOf, caller: Caller, work: Work) -> Response:
    """Write knowledge bases into a bundle, a file that `restore` reads."""
    names = caller.restrict(body.kbs)
    if body.kbs is None and caller.kbs:
        names = [name for name in caller.visible(workspace) if name not in BUILT_IN]
    return work.start("bundle", {"kbs": names}, wait=body.wait)


@routes.get("/bundles/{archive}", ADMIN, responses=file_responses())
def fetch_bundle(
    archive: ArchiveId, workspace: WorkspaceOf, caller: Caller, conditions: ConditionsOf
) -> Response:
    """Fetch a bundle; it is kept for a day."""
    place = bundle_of(workspace, caller, archive)
    return file_response(place.open("rb"), "bundle.zip", archive, conditions)


@routes.post("/restore", ADMIN, work=Restoration)
def restore_bundle(
    *,
    workspace: WorkspaceOf,
    caller: Caller,
    work: Work,
    bundle: Annotated[UploadFile, File(description="The bundle.")],
    name: Annotated[
        str,
        WithJsonSchema(SLUG),
        Form(description="New name of its only knowledge base; by default the old one."),
    ] = "",
    verify: Annotated[
        str,
        Form(
            description="Public Ed25519 key (PEM) of the required signer, who is trusted.",
            max_length=10_000,
        ),
    ] = "",
    trust: Annotated[
        Literal["true", "false"],
        Form(
            description=(
                "Whether its sources may be read, except those on the server's disk, and its "
                "models may be used."
            )
        ),
    ] = "false",
    wait: Annotated[
        Literal["true", "false"], Form(description="Whether to wait some seconds for the result.")
    ] = "true",
) -> Response:
    """Restore a bundle, all or nothing; nothing is crawled or embedded."""
    caller.require_all_kbs()
    digest = hashlib.file_digest(bundle.file, "sha256").hexdigest()  # type: ignore[arg-type]

    def done() -> Response:
        bundle.file.seek(0)
        files: list[tuple[str, bytes | BinaryIO]] = [(UPLOAD, bundle.file)]
        if verify:
            files.append((KEY, verify.encode("utf-8", "replace")))
        arguments = {
            "uploads": store_uploads(workspace, files),
            "name": name,
            "verify": bool(verify),
            "trust": trust == "true",
        }
        return work.run("restore", arguments, wait=wait == "true")

    return work.once([digest, name, verify, trust, wait], done)
