"""The command line: parses arguments, calls a workspace, prints results.

Exit codes: 0 done; 1 an error that the message explains; 2 wrong usage; 3 done, but a source gave
nothing at all; 4 an evaluation below its floor; 130 interrupted.
"""

from __future__ import annotations

import gc
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from inspect import Parameter
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypeVar, get_type_hints

import typer
from typer.core import TyperArgument, TyperGroup, TyperOption
from typer.main import get_group
from typer.models import CommandInfo, TyperInfo

from kbkit.cli.terminal import complain, print_ingest, set_verbosity, to_options
from kbkit.errors import KbkitError
from kbkit.runtime.logs import configure as configure_logs

if TYPE_CHECKING:
    from kbkit.models import IngestReport
    from kbkit.workspace import Workspace

__all__ = ["EXIT_BELOW_FLOOR", "EXIT_ERROR", "EXIT_NOTHING_READ", "app", "main"]
T = TypeVar("T")
_GC_THRESHOLD = 200_000
"""More objects than a search allocates."""


def main() -> NoReturn:
    """Run the command line; an error becomes one clear message."""
    with _late_garbage_collection():
        _run()


@contextmanager
def _late_garbage_collection() -> Iterator[None]:
    thresholds = gc.get_threshold()

    def restore(*_: Any) -> None:
        if restore in gc.callbacks:  # once: an interrupt during a callback is lost
            gc.callbacks.remove(restore)
            gc.set_threshold(*thresholds)

    gc.set_threshold(_GC_THRESHOLD, *thresholds[1:])
    gc.callbacks.append(restore)  # at the first collection
    try:
        yield
    finally:
        restore()
        gc.freeze()


def _run() -> NoReturn:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # any text must be printable
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
    except KbkitError as error:
        complain(f"kbkit: {to_options(str(error))}")
        sys.exit(EXIT_ERROR)
    except BrokenPipeError:  # the reader of the pipe ended, as `head` does
        sys.stderr.close()
        sys.exit(EXIT_ERROR)
    except OSError as error:  # such as a full disk
        complain(f"kbkit: {error}")
        sys.exit(EXIT_ERROR)
    sys.exit(0)


EXIT_ERROR = 1
EXIT_NOTHING_READ = 3
EXIT_BELOW_FLOOR = 4

_MODULES = (
    ("workspace", "bundle backup restore"),
    ("workspace", "doctor rebuild runs"),
    ("manage", "new add list show documents chunks refresh improve expand annotate"),
    ("workspace", "mcp"),
    ("workspace", "migrate"),
    ("recipes", "build notebook"),
    ("publish", "export serve-site watch panel"),
    ("query", "search context eval tune fidelity"),
    ("recipes", "init"),
    ("publish", "serve"),
    ("graph", "subjects about"),
    ("files", "delete undelete trash compact rename describe"),
    ("workspace", "config"),
    ("entries", "entries"),
    ("files", "files"),
    ("graph", "graph"),
    ("sources", "sources"),
    ("workspace", "models"),
    ("recipes", "recipes"),
    ("publish", "token"),
)
_MODULE_OF = {name: module for module, names in _MODULES for name in names.split()}
"""The module of each command, in the order of the help."""


# click's class, which newer versions of typer vendor
UsageError: Any = typer.BadParameter.__bases__[0]


class _Commands(TyperGroup):
    """Commands whose modules are imported on demand."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in self.commands:
            load_commands(cmd_name if cmd_name in _MODULE_OF else None)
            self.commands = get_group(app).commands
        return super().get_command(ctx, cmd_name)

    def list_commands(self, ctx: Any) -> list[str]:
        load_commands()
        self.commands = get_group(app).commands
        return super().list_commands(ctx)

    def invoke(self, ctx: Any) -> Any:
        """Run a command; Ctrl+C at a prompt interrupts it."""
        try:
            return super().invoke(ctx)
        except typer.Abort as aborted:
            if isinstance(aborted.__context__, KeyboardInterrupt):
                raise KeyboardInterrupt from aborted
            raise
        except UsageError as error:
            option = getattr(error, "option_name", "")  # of NoSuchOption
            if option and any(option in each.opts for each in self.params):
                error.possibilities = []
                error.message += (
                    f". Write it before the command: kbkit {option} ... {ctx.invoked_subcommand}"
                )
            if not ctx.params.get("log_json"):
                raise
            configure_logs(as_json=True)  # not yet configured if the command is unknown
            complain(error.format_message())
            raise typer.Exit(error.exit_code) from None


_VALUES = {"<str>": "TEXT", "<int>": "NUMBER", "<float>": "NUMBER", "<path>": "PATH"}


def _name_values() -> None:
    """Name the values of options in help, where newer versions of typer show Python's types."""
    shown = getattr(TyperOption, "display_type", None)
    if shown is None:
        return

    def display_type(option: TyperOption, ctx: typer.Context) -> str:
        kind: str = shown(option, ctx)
        kind = kind.replace(" range>", ">").replace("<list[", "<").replace("]>", ">")
        return _VALUES.get(kind, kind)

    # setattr, since the classes of older versions have no such methods
    setattr(TyperOption, "display_type", display_type)  # noqa: B010
    setattr(TyperArgument, "display_type_rich", lambda argument, ctx: "")  # noqa: B010


_name_values()
app = typer.Typer(
    cls=_Commands,
    help="Turn documentation into knowledge bases that answer, and publish them.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the knowledge base.")]
UntilClosed = Annotated[
    bool,
    typer.Option(
        "--until-stdin-closes", help="Stop when standard input closes, for programs that start it."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Within = Annotated[
    list[str] | None, typer.Option("--kb", help="Only in this knowledge base (default: all).")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
AllowPrivate = Annotated[
    bool, typer.Option("--allow-private", help="Allow loopback and private addresses.")
]
Trust = Annotated[
    bool,
    typer.Option(
        "--trust",
        help="Allow all that the recipe asks for: other folders, private addresses, code to run.",
    ),
]


def _print_version(wanted: bool) -> None:
    if wanted:
        from kbkit import __version__

        typer.echo(f"kbkit {__version__}")
        raise typer.Exit


@app.callback()
def workspace_option(
    workspace: Annotated[
        Path | None,
        typer.Option(help="Folder of the workspace (default: KBKIT_WORKSPACE, kbkit.toml, ./kb)."),
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log every step.")] = False,
    log_json: Annotated[
        bool,
        typer.Option(
            "--log-json", help="Log steps and errors as JSON lines; secrets are left out."
        ),
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print only results and errors.")
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
    configure_logs(verbose - quiet, as_json=log_json)
    _Chosen.workspace = workspace


@contextmanager
def resumable(command: str) -> Iterator[None]:
    """After an interruption, print the command that continues the work."""
    try:
        yield
    except KeyboardInterrupt:
        complain(f"interrupted; finished work is kept, and `{command}` continues it")
        raise


def takes(options_of: Callable[..., Any], into: str) -> Callable[..., Callable[..., None]]:
    """Give a command the options of a function, whose result is the argument ``into``."""
    options = inspect.signature(options_of).parameters

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        def run(**arguments: Any) -> None:
            selected = {name: arguments.pop(name) for name in options}
            command(**arguments, **{into: options_of(**selected)})

        # typer reads the signature
        hints = {
            **get_type_hints(options_of, include_extras=True),
            **get_type_hints(command, include_extras=True),
        }
        parameters: list[inspect.Parameter] = []
        for name, parameter in inspect.signature(command).parameters.items():
            parameters += options.values() if name == into else [parameter]
        run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [
                each.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[each.name])
                for each in parameters
            ]
        )
        run.__annotations__ = {each.name: hints[each.name] for each in parameters}
        run.__name__, run.__doc__ = command.__name__, command.__doc__
        return run

    return decorate


Options = Mapping[str, tuple[str, Any, str]]
"""Spelling (``""`` for the name), type and help of options, by name."""


def with_options(table: Options) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Give a function of keyword arguments the options of a table, for `takes`."""

    def decorate(function: Callable[..., T]) -> Callable[..., T]:
        hints = {
            name: Annotated[kind | None, typer.Option(*filter(None, [spelling]), help=text)]
            for name, (spelling, kind, text) in table.items()
        }
        function.__annotations__ = hints
        function.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [
                Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=hint)
                for name, hint in hints.items()
            ]
        )
        return function

    return decorate


def load_commands(name: str | None = None) -> None:
    """Import the modules of all commands or of one, which registers them with `app`."""
    for module in [_MODULE_OF[name]] if name else _MODULE_OF.values():
        import_module(f"kbkit.cli.{module}")
    names = list(_MODULE_OF)
    for infos in (app.registered_commands, app.registered_groups):
        infos.sort(key=lambda info: names.index(_name(info)))  # not in the order of imports


def _name(info: CommandInfo | TyperInfo) -> str:
    return str(info.name or getattr(info.callback, "__name__", "").replace("_", "-"))


def finish(report: IngestReport, as_json: bool, name: str) -> None:
    """Print the report; exit with 3 if nothing was read or a source failed."""
    print_ingest(report, as_json, name)
    if report.nothing_read or report.failed_sources:
        raise typer.Exit(EXIT_NOTHING_READ)


class _Chosen:
    workspace: Path | None = None


def chosen_workspace() -> Path | None:
    return _Chosen.workspace


def open_workspace() -> Workspace:
    from kbkit.workspace import Workspace

    return Workspace(_Chosen.workspace)
