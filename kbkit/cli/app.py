"""The application that commands belong to, and what several of them share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperArgument, TyperGroup
from typer.models import ArgumentInfo, OptionInfo

from kbkit.terminal import complain, print_ingest, set_verbosity

if TYPE_CHECKING:
    from kbkit.models import IngestReport
    from kbkit.workspace import Workspace

EXIT_ERROR = 1
EXIT_NOTHING_READ = 3
EXIT_BELOW_FLOOR = 4


class _Commands(TyperGroup):
    def invoke(self, ctx: Any) -> Any:
        """Run a command; who interrupts a question interrupts the command, like anywhere else."""
        try:
            return super().invoke(ctx)
        except typer.Abort as aborted:
            if isinstance(aborted.__context__, KeyboardInterrupt):
                raise KeyboardInterrupt from aborted
            raise


app = typer.Typer(
    cls=_Commands,
    help="Turn documentation into knowledge bases that answer, and publish them.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
)

Name = Annotated[
    str, typer.Argument(metavar="NAME", help="Name of the knowledge base.", show_default=False)
]
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
            help="Folder of the workspace (default: KBKIT_WORKSPACE, else as kbkit.toml says, else "
            "./kb).",
            show_default=False,
        ),
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Tell every step.")] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Tell nothing but results and errors.")
    ] = False,
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Turn documentation into knowledge bases that answer, and publish them."""
    if verbose and quiet:
        raise typer.BadParameter("give either --verbose or --quiet")
    set_verbosity(verbose - quiet)
    context.obj = workspace


@contextmanager
def resumable(command: str) -> Iterator[None]:
    """Tell whoever interrupts the work inside which command goes on with it."""
    try:
        yield
    except KeyboardInterrupt:
        complain(f"interrupted; what was done is kept, and `{command}` goes on from there")
        raise


VALUES = {str: "TEXT", int: "NUMBER", float: "NUMBER", Path: "PATH"}
"""What the value of an option is called that says nothing itself."""


def name_values(commands: typer.Typer) -> None:
    """Call the values of options and arguments what they are, not by their types in Python."""
    # the name of an argument says enough; newer versions of typer add the type to it
    TyperArgument.display_type_rich = lambda self, ctx: ""  # type: ignore[method-assign]
    callbacks = [command.callback for command in commands.registered_commands]
    if commands.registered_callback is not None:
        callbacks.append(commands.registered_callback.callback)
    for callback in filter(None, callbacks):
        hints = get_type_hints(callback, include_extras=True)
        callback.__annotations__ = hints  # texts would be read anew, and give other notes
        for name, hint in hints.items():
            if get_origin(hint) is not Annotated:
                continue
            kind, *notes = get_args(hint)
            kinds = {kind, *get_args(kind)}
            kinds |= {inner for each in get_args(kind) for inner in get_args(each)}  # of a list
            value = next((VALUES[each] for each in kinds if each in VALUES), None)
            for note in notes:
                if isinstance(note, OptionInfo | ArgumentInfo) and not note.metavar:
                    note.metavar = name.upper() if isinstance(note, ArgumentInfo) else value
    for group in commands.registered_groups:
        if group.typer_instance is not None:
            name_values(group.typer_instance)


def finish(report: IngestReport, as_json: bool, name: str) -> None:
    """Print what was done; the exit code tells when that was nothing, or a source failed."""
    print_ingest(report, as_json, name)
    if report.nothing_read or report.failed_sources:
        raise typer.Exit(EXIT_NOTHING_READ)


def open_workspace(context: typer.Context) -> Workspace:
    """The workspace that the options of the command line name."""
    from kbkit.workspace import Workspace

    return Workspace(context.obj)


def workspace_folder(context: typer.Context) -> Path:
    """The folder of that workspace, whether it is there or not."""
    from kbkit.config import Settings

    return Path(context.obj or Settings.load().workspace).absolute()
