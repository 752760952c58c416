"""The application that commands belong to, and what several of them share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kbkit.terminal import print_ingest

if TYPE_CHECKING:
    from kbkit.models import IngestReport
    from kbkit.workspace import Workspace

EXIT_ERROR = 1
EXIT_NOTHING_READ = 3
EXIT_BELOW_FLOOR = 4

app = typer.Typer(
    help="Turn documentation into knowledge bases that answer, and publish them.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
)

Name = Annotated[str, typer.Argument(help="Name of the knowledge base.", show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
AllowPrivate = Annotated[
    bool, typer.Option("--allow-private", help="Permit loopback and private addresses.")
]


def _print_version(wanted: bool) -> None:
    if wanted:
        from kbkit import __version__

        typer.echo(f"kbkit {__version__}")
        raise typer.Exit


@app.callback()
def workspace_option(
    context: typer.Context,
    workspace: Annotated[
        Path | None,
        typer.Option(
            envvar="KBKIT_WORKSPACE",
            help="Folder of the workspace (default: ./kb).",
            show_default=False,
        ),
    ] = None,
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Turn documentation into knowledge bases that answer, and publish them."""
    context.obj = workspace


def finish(report: IngestReport, as_json: bool, name: str) -> None:
    """Print what was done; the exit code tells when that was nothing."""
    print_ingest(report, as_json, name)
    if nothing_read(report):
        raise typer.Exit(EXIT_NOTHING_READ)


def nothing_read(report: IngestReport) -> bool:
    """Whether nothing at all came of what was tried."""
    return bool(report.failed or report.skipped) and not (
        report.new or report.changed or report.same
    )


def open_workspace(context: typer.Context) -> Workspace:
    """The workspace that the options of the command line name."""
    from kbkit.workspace import Workspace

    return Workspace(context.obj)
