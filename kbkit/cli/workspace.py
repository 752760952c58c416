"""Commands for whole workspaces: bundle, restore, check, migrate, settings, models and MCP."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kbkit.cli import (
    EXIT_ERROR,
    AllowPrivate,
    AsJson,
    app,
    chosen_workspace,
    open_workspace,
    resumable,
)
from kbkit.cli.terminal import print_json, print_listing, print_table, printed, progress, say
from kbkit.mcp import MIN_TOKENS, SET_NAMES, USUAL_TOKENS, check_sets
from kbkit.mcp.stdio import serve
from kbkit.models import BundleInfo
from kbkit.models.values import pluralize

if TYPE_CHECKING:
    from kbkit.models import Migration


@app.command()
def mcp(
    tools: Annotated[
        str,
        typer.Option(
            metavar="SETS", help=f"Tool sets, separated by commas: {', '.join(SET_NAMES)}, all."
        ),
    ] = "core",
    allow_write: Annotated[
        bool, typer.Option("--allow-write", help="Include tools that write.")
    ] = False,
    max_tokens: Annotated[
        int, typer.Option(min=MIN_TOKENS, help="Maximum tokens of an answer.")
    ] = USUAL_TOKENS,
    roots: Annotated[
        list[Path] | None,
        typer.Option("--root", help="Folder that tools may read files from. Repeatable."),
    ] = None,
) -> None:
    """Serve agents over MCP on standard input and output."""
    sets = check_sets([name.strip() for name in tools.split(",") if name.strip()])
    serve(
        chosen_workspace(), sets, allow_write=allow_write, max_tokens=max_tokens, roots=roots or ()
    )


@app.command()
def migrate(
    to: Annotated[
        str,
        typer.Option(
            metavar="URL",
            help="Where to: postgresql+psycopg://USER@HOST:PORT/DATABASE (an empty one; the "
            "password may be in PGPASSWORD or ~/.pgpass), or a folder without a catalog.",
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Move the workspace to PostgreSQL or to a folder."""
    from kbkit.workflows.migration import migrate as move

    with resumable("kbkit migrate"), progress() as on_progress:
        done = move(chosen_workspace(), to=to, on_progress=on_progress)
    if printed(done, as_json):
        return
    rows = ((table.name, f"{table.rows:,}", table.digest) for table in done.tables if table.rows)
    print_table(("table", "rows", "BLAKE2 of both"), rows)
    _print_locations(done)


def _print_locations(done: Migration) -> None:
    say(
        f"moved {done.rows:,} rows in {done.seconds:,.0f} s"
        + (f", {done.kept:,} of them before an interruption" if done.kept else "")
        + "; all tables are the same in both places"
    )
    say(f"the catalog is in {done.destination} now; the one in {done.source} is unchanged")
    if "://" in done.destination:
        say(
            "set KBKIT_DATABASE_URL to that address; files, entries and pictures stay in the "
            "folder of the workspace; its catalog.db and chroma are no longer read"
        )
        return
    say(
        "unset KBKIT_DATABASE_URL, and name that folder as the workspace; "
        f"copied into it: {', '.join(done.folders) or 'nothing else'}; the vector "
        "index was rebuilt, and snapshots are rebuilt on demand"
    )


models = typer.Typer(help="Manage embedding models.", no_args_is_help=True)
app.add_typer(models, name="models")

Model = Annotated[str, typer.Argument(help="A model of the list, or OWNER/MODEL of the hub.")]


@models.command("list")
def list_(as_json: AsJson = False) -> None:
    """List embedding models and which are installed."""
    from kbkit.workflows.embedding_models import list_models

    print_listing(
        list_models(),
        as_json,
        "name dimensions megabytes cost languages license good_for installed",
        installed=lambda model: model.installed or model.where,
    )
    if not as_json:
        say("cost: time of a chunk, static vectors as 1, about")


@models.command()
def fetch(
    name: Model,
    revision: Annotated[str, typer.Option(help="Branch, tag or commit.")] = "",
    file: Annotated[str, typer.Option(help="Path of the ONNX file in the repository.")] = "",
    sha256: Annotated[str, typer.Option(help="Expected SHA-256 of the ONNX file.")] = "",
    allow_private: AllowPrivate = False,
) -> None:
    """Download a model; resumes after an interruption."""
    from kbkit.workflows.embedding_models import fetch_model

    with resumable(f"kbkit models fetch {name}"), progress() as on_progress:
        folder = fetch_model(
            name,
            revision=revision,
            file=file,
            sha256=sha256,
            allow_private=allow_private,
            on_progress=on_progress,
        )
    say(f"fetched {name} to {folder}; name it in a recipe: {{type: onnx, preset: {name}}}")


@models.command()
def remove(
    name: Model,
    forget: Annotated[bool, typer.Option("--forget", help="Also forget its hashes.")] = False,
) -> None:
    """Delete a downloaded model."""
    from kbkit.workflows.embedding_models import remove_model

    remove_model(name, forget=forget)
    say(f"removed {name}")


Names = Annotated[
    list[str] | None, typer.Argument(metavar="NAME...", help="Knowledge bases (default: all).")
]


@app.command()
def doctor(
    repair: Annotated[
        bool, typer.Option("--repair", help="Rebuild damaged indexes from the catalog.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check a workspace for damage."""
    with open_workspace() as workspace:
        health = workspace.doctor(repair=repair)
    if not printed({"sound": health.sound, **health.to_dict()}, as_json):
        for finding in health.findings:
            say(str(finding))
        checked = pluralize(health.knowledge_bases, "knowledge base")
        say(f"{checked}: {'sound' if health.sound else 'not sound'}")
    if not health.sound:
        raise typer.Exit(EXIT_ERROR)


@app.command()
def rebuild(names: Names = None) -> None:
    """Rebuild all indexes from the catalog."""
    with open_workspace() as workspace:
        done = workspace.rebuild(names)
    say(f"rebuilt: {', '.join(done) or 'nothing'}")


@app.command()
def runs(names: Names = None, as_json: AsJson = False) -> None:
    """List past reads of sources, the latest first."""
    with open_workspace() as workspace:
        listed = workspace.runs(names)
    print_listing(
        listed,
        as_json,
        "started_at seconds kb counts source",
        empty="no source was read yet",
        seconds=lambda run: run.seconds if run.finished_at else "unfinished",
    )


Sign = Annotated[
    Path | None,
    typer.Option(metavar="KEYFILE", help="Sign it with this private Ed25519 key (PEM)."),
]


@app.command()
def bundle(
    places: Annotated[
        list[str],
        typer.Argument(metavar="[NAME]... FILE", help="Knowledge bases, then the file to write."),
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
    with open_workspace() as workspace, progress() as on_progress:
        kbs = None if everything else names
        done = workspace.bundle(file, kbs=kbs, sign=sign, on_progress=on_progress)
    _print_bundle(done, as_json)


@app.command()
def backup(
    place: Annotated[
        str,
        typer.Argument(
            metavar="FILE_OR_FOLDER", help="A new file, or a folder for one named after the time."
        ),
    ],
    sign: Sign = None,
    as_json: AsJson = False,
) -> None:
    """Write the whole workspace to one file."""
    with open_workspace() as workspace, progress() as on_progress:
        done = workspace.bundle(place, sign=sign, on_progress=on_progress)
    _print_bundle(done, as_json)


def _print_bundle(done: BundleInfo, as_json: bool) -> None:
    for reason in done.skipped:
        say(f"left out: {reason}")
    if printed(done, as_json):
        return
    say(
        f"wrote {done.path}: {pluralize(len(done.knowledge_bases), 'knowledge base')}, "
        f"{pluralize(done.documents)}, {done.bytes / 1e6:,.1f} MB, in {done.seconds:,.1f} s"
        + (", signed" if done.signed else "")
    )


@app.command()
def restore(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The bundle.")],
    name: Annotated[
        str,
        typer.Option(
            "--as", metavar="NAME", help="New name of its knowledge base (default: unchanged)."
        ),
    ] = "",
    verify: Annotated[
        Path | None,
        typer.Option(
            metavar="PUBLICKEY", help="Restore only if this public Ed25519 key (PEM) signed it."
        ),
    ] = None,
    trust: Annotated[
        bool, typer.Option("--trust", help="Allow it to read its sources and use its models.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Restore a bundle or a backup."""
    with open_workspace() as workspace, progress() as on_progress:
        done = workspace.restore(
            file, name=name, verify=verify, trust=trust, on_progress=on_progress
        )
    if printed(done, as_json):
        return
    for kb in done.knowledge_bases:
        restored = f"restored {pluralize(kb.documents)}, {kb.ratings:,} ratings"
        say(f"{kb.name}: {restored}" + ("" if kb.new else "; existing data stayed"))
    if done.files or done.kept:
        say(
            f"restored {pluralize(len(done.files), 'file')}, and kept {len(done.kept):,} that "
            "differ here"
        )
    if done.sources:
        say(
            f"{pluralize(done.sources, 'source')} will not be read: enable with `kbkit sources "
            "enable`, or restore with --trust"
        )
    say(f"restored in {done.seconds:,.1f} s")


config = typer.Typer(help="Show settings and where they come from.", no_args_is_help=True)
app.add_typer(config, name="config")

_SECRETS = ("panel_token", "database_url", "chroma_url", "chroma_token")


@config.command("show")
def show(as_json: AsJson = False) -> None:
    """Show each setting with its value and origin."""
    from kbkit.runtime.config import setting_values, unknown_variables

    rows = []
    for each in setting_values():
        value, origin = each.value, each.origin
        if each.name == "workspace" and chosen_workspace() is not None:
            value, origin = chosen_workspace(), "--workspace"
        if each.name in _SECRETS and value:
            value = "(set)"
        rows.append((each.name, str(value), origin))
    if as_json:
        print_json([dict(zip(("name", "value", "origin"), row, strict=True)) for row in rows])
    else:
        print_table(("setting", "value", "from"), rows)
        say("What they mean: https://kbkit.github.io/kbkit/settings/")
    for problem in unknown_variables():
        say(f"note: {problem}")
