"""Commands for whole workspaces: bundle, restore, check, migrate, settings, models and MCP."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kbkit.cli import EXIT_ERROR, Chosen, Done, app, command
from kbkit.cli.terminal import listing, print_table, say, say_notes
from kbkit.mcp import MIN_TOKENS, SET_NAMES, USUAL_TOKENS, check_sets
from kbkit.mcp.stdio import serve
from kbkit.models.values import pluralize

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kbkit.models import BundleInfo, Migration, Restoration, Run
    from kbkit.runtime.progress import OnProgress
    from kbkit.workflows.embedding_models import ModelInfo
    from kbkit.workspace import Workspace


TOOLS = f"Tool sets, separated by commas: {', '.join(SET_NAMES)}, all."
Roots = Annotated[list[Path] | None, typer.Option("--root", exists=True, file_okay=False)]


@command(app)
def mcp(
    *,
    tools: Annotated[str, typer.Option("--tools", help=TOOLS)] = "core",
    allow_write: bool = False,
    max_tokens: Annotated[int, typer.Option(min=MIN_TOKENS)] = USUAL_TOKENS,
    roots: Roots = None,
) -> None:
    """Serve agents over MCP on standard input and output.

    Args:
        allow_write: Include tools that write.
        max_tokens: Maximum tokens of an answer.
        roots: Folder that tools may read files from. Repeatable.
    """
    sets = check_sets([name.strip() for name in tools.split(",") if name.strip()])
    serve(Chosen.workspace, sets, allow_write=allow_write, max_tokens=max_tokens, roots=roots or ())


def _print_migration(report: Migration) -> None:
    rows = ((table.name, f"{table.rows:,}", table.digest) for table in report.tables if table.rows)
    print_table(("table", "rows", "BLAKE2 of both"), rows)
    say(
        f"moved {report.rows:,} rows in {report.seconds:,.0f} s"
        + (f", {report.kept:,} of them before an interruption" if report.kept else "")
        + "; all tables are the same in both places"
    )
    say(f"the catalog is in {report.destination} now; the one in {report.source} is unchanged")
    if "://" in report.destination:
        say(
            "set KBKIT_DATABASE_URL to that address; files, entries and pictures stay in the "
            "folder of the workspace; its catalog.db and chroma are no longer read"
        )
        return
    say(
        "unset KBKIT_DATABASE_URL, and name that folder as the workspace; "
        f"copied into it: {', '.join(report.folders) or 'nothing else'}; the vector "
        "index was rebuilt, and snapshots are rebuilt on demand"
    )


@command(app, show=_print_migration, resume="kbkit migrate")
def migrate(*, to: str, on_progress: OnProgress | None) -> Migration:
    """Move the workspace to PostgreSQL or to a folder.

    Args:
        to: Where to: postgresql+psycopg://USER@HOST:PORT/DATABASE (an empty one; the password may
            be in PGPASSWORD or ~/.pgpass), or a folder without a catalog.
    """
    from kbkit.workflows.migration import migrate as move

    return move(Chosen.workspace, to=to, on_progress=on_progress)


models = typer.Typer(help="Manage embedding models.", no_args_is_help=True)
app.add_typer(models, name="models")

Model = Annotated[str, typer.Argument(help="A model of the list, or OWNER/MODEL of the hub.")]


@command(
    models,
    "list",
    show=listing(
        "name dimensions megabytes cost languages license good_for installed",
        installed=lambda model: model.installed or model.where,
    ),
)
def list_() -> Sequence[ModelInfo]:
    """List embedding models and which are installed."""
    from kbkit.workflows.embedding_models import list_models

    say("cost: time of a chunk, static vectors as 1, about")
    return list_models()


@command(models, resume="kbkit models fetch {name}")
def fetch(
    name: Model,
    *,
    revision: str = "",
    file: str = "",
    sha256: str = "",
    allow_private: bool = False,
    on_progress: OnProgress | None,
) -> None:
    """Download a model; resumes after an interruption.

    Args:
        revision: Branch, tag or commit.
        file: Path of the ONNX file in the repository.
        sha256: Expected SHA-256 of the ONNX file.
    """
    from kbkit.workflows.embedding_models import fetch_model

    folder = fetch_model(
        name,
        revision=revision,
        file=file,
        sha256=sha256,
        allow_private=allow_private,
        on_progress=on_progress,
    )
    say(f"fetched {name} to {folder}; name it in a recipe: {{type: onnx, preset: {name}}}")


@command(models)
def remove(name: Model, *, forget: bool = False) -> None:
    """Delete a downloaded model.

    Args:
        forget: Also forget its hashes.
    """
    from kbkit.workflows.embedding_models import remove_model

    remove_model(name, forget=forget)
    say(f"removed {name}")


Names = Annotated[
    list[str] | None, typer.Argument(metavar="NAME...", help="Knowledge bases (default: all).")
]


@command(app)
def doctor(ws: Workspace, *, repair: bool = False) -> Done:
    """Check a workspace for damage.

    Args:
        repair: Rebuild damaged indexes from the catalog.
    """
    health = ws.doctor(repair=repair)
    checked = pluralize(health.knowledge_bases, "knowledge base")
    lines = [*map(str, health.findings), f"{checked}: {'sound' if health.sound else 'not sound'}"]
    values = {"sound": health.sound, **health.to_dict()}
    return Done(values, "\n".join(lines), 0 if health.sound else EXIT_ERROR)


@command(app)
def rebuild(ws: Workspace, names: Names = None) -> None:
    """Rebuild all indexes from the catalog."""
    say(f"rebuilt: {', '.join(ws.rebuild(names)) or 'nothing'}")


@command(
    app,
    show=listing(
        "started_at seconds kb counts source",
        "no source was read yet",
        seconds=lambda run: round(run.seconds, 1) if run.finished_at else "unfinished",
    ),
)
def runs(ws: Workspace, names: Names = None) -> list[Run]:
    """List past reads of sources, the latest first."""
    return ws.runs(names)


def _print_bundle(report: BundleInfo) -> None:
    for reason in report.skipped:
        say(f"left out: {reason}")
    say(
        f"wrote {report.path}: {pluralize(len(report.knowledge_bases), 'knowledge base')}, "
        f"{pluralize(report.documents)}, {report.bytes / 1e6:,.1f} MB, in {report.seconds:,.1f} s"
        + (", signed" if report.signed else "")
    )


@command(app, show=_print_bundle)
def bundle(
    ws: Workspace,
    places: Annotated[list[str], typer.Argument(metavar="[NAME]... FILE")],
    *,
    everything: Annotated[bool, typer.Option("--all")] = False,
    sign: Path | None = None,
    on_progress: OnProgress | None,
) -> BundleInfo:
    """Write knowledge bases to one portable file.

    Args:
        places: Knowledge bases, then the file to write.
        everything: Include all knowledge bases, files and entries.
    """
    *names, file = places
    if everything == bool(names):
        raise typer.BadParameter("name knowledge bases and then a file, or give --all and a file")
    kbs = None if everything else names
    return ws.bundle(file, kbs=kbs, sign=sign, on_progress=on_progress)


@command(app, show=_print_bundle)
def backup(
    ws: Workspace,
    place: Annotated[str, typer.Argument(metavar="FILE_OR_FOLDER")],
    *,
    sign: Path | None = None,
    on_progress: OnProgress | None,
) -> BundleInfo:
    """Write the whole workspace to one file.

    Args:
        place: A new file, or a folder for one named after the time.
    """
    return ws.bundle(place, sign=sign, on_progress=on_progress)


def _print_restored(report: Restoration) -> None:
    for kb in report.knowledge_bases:
        restored = f"restored {pluralize(kb.documents)}, {kb.ratings:,} ratings"
        say(f"{kb.name}: {restored}" + ("" if kb.new else "; existing data stayed"))
    if report.files or report.kept:
        say(
            f"restored {pluralize(len(report.files), 'file')}, and kept {len(report.kept):,} that "
            "differ here"
        )
    if report.sources:
        say(
            f"{pluralize(report.sources, 'source')} will not be read: enable with `kbkit sources "
            "enable`, or restore with --trust"
        )
    say(f"restored in {report.seconds:,.1f} s")


@command(app, show=_print_restored)
def restore(
    ws: Workspace,
    file: str,
    *,
    name: Annotated[str, typer.Option("--as")] = "",
    verify: Path | None = None,
    trust: bool = False,
    on_progress: OnProgress | None,
) -> Restoration:
    """Restore a bundle or a backup.

    Args:
        file: The bundle.
        name: New name of its knowledge base (default: unchanged).
        verify: Restore only if this public Ed25519 key (PEM) signed it.
        trust: Allow it to read its sources and use its models.
    """
    return ws.restore(file, name=name, verify=verify, trust=trust, on_progress=on_progress)


config = typer.Typer(help="Show settings and where they come from.", no_args_is_help=True)
app.add_typer(config, name="config")

_SECRETS = ("panel_token", "database_url", "chroma_url", "chroma_token")


@command(config)
def show() -> Done:
    """Show each setting with its value and origin."""
    from kbkit.runtime.config import setting_values, unknown_variables

    rows = []
    for setting in setting_values():
        value, origin = setting.value, setting.origin
        if setting.name == "workspace" and Chosen.workspace is not None:
            value, origin = Chosen.workspace, "--workspace"
        if setting.name in _SECRETS and value:
            value = "(set)"
        rows.append((setting.name, str(value), origin))
    say_notes(unknown_variables())
    say("What they mean: https://kbkit.github.io/kbkit/settings/")
    values = [dict(zip(("name", "value", "origin"), row, strict=True)) for row in rows]
    return Done(values, partial(print_table, ("setting", "value", "from"), rows))
