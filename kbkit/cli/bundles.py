"""Commands that take knowledge bases elsewhere in a file, and back them up."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kbkit.cli.app import AsJson, app, open_workspace
from kbkit.models import BundleInfo
from kbkit.models.plain import pluralize
from kbkit.terminal import print_json, progress, say

Sign = Annotated[
    Path | None,
    typer.Option(
        metavar="KEYFILE",
        help="Sign it with this private Ed25519 key (PEM).",
        show_default=False,
    ),
]


@app.command()
def bundle(
    context: typer.Context,
    places: Annotated[
        list[str],
        typer.Argument(
            metavar="[NAME]... FILE",
            help="Knowledge bases, then the file to write.",
            show_default=False,
        ),
    ],
    everything: Annotated[
        bool, typer.Option("--all", help="Include all knowledge bases, files and entries.")
    ] = False,
    sign: Sign = None,
    as_json: AsJson = False,
) -> None:
    """Write knowledge bases to one portable file."""
    *names, file = places
    if everything == bool(names):
        raise typer.BadParameter("name knowledge bases and then a file, or give --all and a file")
    with open_workspace(context) as workspace, progress() as on_progress:
        kbs = None if everything else names
        done = workspace.bundle(file, kbs=kbs, sign=sign, on_progress=on_progress)
    _tell(done, as_json)


@app.command()
def backup(
    context: typer.Context,
    place: Annotated[
        str,
        typer.Argument(
            metavar="FILE_OR_FOLDER",
            help="A new file, or a folder for one named after the time.",
            show_default=False,
        ),
    ],
    sign: Sign = None,
    as_json: AsJson = False,
) -> None:
    """Write the whole workspace to one file."""
    with open_workspace(context) as workspace, progress() as on_progress:
        done = workspace.bundle(place, sign=sign, on_progress=on_progress)
    _tell(done, as_json)


def _tell(done: BundleInfo, as_json: bool) -> None:
    for reason in done.skipped:
        say(f"left out: {reason}")
    if as_json:
        print_json(done.to_dict())
        return
    say(
        f"wrote {done.path}: {pluralize(len(done.knowledge_bases), 'knowledge base')}, "
        f"{pluralize(done.documents)}, {done.bytes / 1e6:,.1f} MB, in {done.seconds:,.1f} s"
        + (", signed" if done.signed else "")
    )


@app.command()
def restore(
    context: typer.Context,
    file: Annotated[str, typer.Argument(metavar="FILE", help="The bundle.", show_default=False)],
    name: Annotated[
        str,
        typer.Option(
            "--as", metavar="NAME", help="New name of its knowledge base (default: unchanged)."
        ),
    ] = "",
    verify: Annotated[
        Path | None,
        typer.Option(
            metavar="PUBLICKEY",
            help="Restore only if this public Ed25519 key (PEM) signed it.",
            show_default=False,
        ),
    ] = None,
    trust: Annotated[
        bool,
        typer.Option("--trust", help="Allow it to read its sources and use its models."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Restore a bundle or a backup."""
    with open_workspace(context) as workspace, progress() as on_progress:
        done = workspace.restore(
            file, name=name, verify=verify, trust=trust, on_progress=on_progress
        )
    if as_json:
        print_json(done.to_dict())
        return
    for kb in done.knowledge_bases:
        came = f"{pluralize(kb.documents)}, {kb.ratings:,} ratings came"
        say(f"{kb.name}: {came}" + ("" if kb.new else "; what was there stayed"))
    if done.files or done.kept:
        say(f"{pluralize(len(done.files), 'file')} came, and {len(done.kept):,} that say something "
            "else here stayed")  # fmt: skip
    if done.sources:
        say(f"{pluralize(done.sources, 'source')} will not be read: `kbkit sources enable`, or "
            "--trust the next time")  # fmt: skip
    say(f"restored in {done.seconds:,.1f} s")
