"""The command line: parses arguments, calls a workspace, prints results.

Exit codes: 0 done; 1 an error that the message explains; 2 wrong usage; 3 done, but a source gave
nothing at all; 4 an evaluation below its floor; 130 interrupted.
"""

from __future__ import annotations

import gc
import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from copy import copy
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from inspect import Parameter
from io import TextIOWrapper
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypeVar, get_args, get_type_hints

import typer
from typer.core import TyperArgument, TyperGroup
from typer.main import get_group

from kbkit.cli import terminal
from kbkit.errors import KbkitError
from kbkit.models.values import reword
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
    gc.set_threshold(_GC_THRESHOLD)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # any text must be printable
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
    except BrokenPipeError:  # the reader of the pipe ended, as `head` does
        sys.stderr.close()
        sys.exit(EXIT_ERROR)
    except (KbkitError, OSError) as error:  # such as a full disk
        terminal.complain(f"kbkit: {terminal.to_options(str(error))}")
        sys.exit(EXIT_ERROR)
    finally:
        gc.freeze()  # the end of the process needs no collection
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
MODULE_OF = {name: module for module, names in _MODULES for name in names.split()}
"""The module of each command, in the order of the help."""


# click's class, which newer versions of typer vendor
UsageError: Any = typer.BadParameter.__bases__[0]


class _Commands(TyperGroup):
    """Commands whose modules are imported on demand."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in self.commands:
            load_commands(cmd_name if cmd_name in MODULE_OF else None)
            self.commands = get_group(app).commands
        return super().get_command(ctx, cmd_name)

    def list_commands(self, ctx: Any) -> list[str]:
        load_commands()
        self.commands = get_group(app).commands
        return list(MODULE_OF)

    def invoke(self, ctx: Any) -> Any:
        """Run a command; Ctrl+C at a prompt interrupts it."""
        try:
            return super().invoke(ctx)
        except typer.Abort as aborted:
            if isinstance(aborted.__context__, KeyboardInterrupt):
                raise KeyboardInterrupt from aborted
            raise
        except UsageError as error:
            error.message = reword(error.message)  # newer versions of typer check with pydantic
            option = getattr(error, "option_name", "")  # of NoSuchOption
            if option and any(option in each.opts for each in self.params):
                error.possibilities = []
                error.message += (
                    f". Write it before the command: kbkit {option} ... {ctx.invoked_subcommand}"
                )
            if not ctx.params.get("log_json"):
                raise
            configure_logs(as_json=True)  # not yet configured if the command is unknown
            terminal.complain(error.format_message())
            raise typer.Exit(error.exit_code) from None


# Newer versions of typer show Python's type of each argument in help, which `_parameter` names.
setattr(TyperArgument, "display_type_rich", lambda argument, ctx: "")  # noqa: B010 - no such type
app = typer.Typer(
    cls=_Commands,
    help="Turn documentation into knowledge bases that answer, and publish them.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
)

Count = Annotated[int, typer.Option(min=1)]
OptionalCount = Annotated[int | None, typer.Option(min=1)]
Port = Annotated[int, typer.Option(min=0, max=65535)]

# spelling and help of parameters that several commands share
_SPELLED = {
    "as_json": "--json",
    "as_jsonl": "--jsonl",
    "kbs": "--kb",
    "limit": "--limit -n",
    "output": "--output -o",
    "quiet": "--quiet -q",
    "tags": "--tag",
    "verbose": "--verbose -v",
    "yes": "--yes -y",
}
_HELP = {
    "allow_private": "Allow loopback and private addresses.",
    "as_json": "Print JSON.",
    "build": "Also run MkDocs.",
    "by": "Only changes by this person.",
    "entity": "An entity, by its name or id.",
    "estimate": "Only print an estimate of the tokens to send.",
    "folder": "Output folder (default: the recipe's).",
    "force": "Overwrite an existing file.",
    "input_price": "Price of a million input tokens, for the estimate.",
    "judgements": "TREC qrels with queries (default: the knowledge base's ratings).",
    "kbs": "Only in this knowledge base (default: all).",
    "limit": "Maximum number to show.",
    "mode": "hybrid, dense or lexical.",
    "name": "Name of the knowledge base.",
    "output_price": "Price of a million output tokens, for the estimate.",
    "query": "A question or some words.",
    "questions": "TSV: question, tab, URI suffixes of its pages (commas, best first).",
    "sign": "Sign it with this private Ed25519 key (PEM).",
    "trust": "Allow all that the recipe asks for: other folders, private addresses, code to run.",
    "until_stdin_closes": "Stop when standard input closes, for programs that start it.",
    "wait": "First finish embedding by models.",
    "yes": "Do not ask.",
}
_VALUES = {"str": "TEXT", "int": "NUMBER", "float": "NUMBER", "Path": "PATH"}
"""Names of an option's values in help, by their type."""
_GIVEN = ("ws", "on_progress", "return")
"""Arguments that are not from the command line."""


@dataclass(frozen=True, slots=True)
class Done:
    """The result of a command, a message or its printer for people, and the exit code."""

    value: Any
    message: str | Callable[[], None]
    code: int = 0


def command(
    group: typer.Typer,
    name: str | None = None,
    *,
    show: Callable[[Any], None] | None = None,
    resume: str = "",
) -> Callable[[T], T]:
    """Turn a function into a command; the section ``Args`` of its docstring is the help.

    Keyword-only parameters are options. An option ``Annotated[type, function]`` stands for those of
    the function, whose result is its value. ``ws`` gets the workspace and ``on_progress`` a
    callback. A command that returns something has the option ``--json``.

    Args:
        group: The commands that it belongs to.
        name: Its name, if not the function's.
        show: Prints a result other than `Done` for people.
        resume: The command that continues the work after an interruption, with names to fill.
    """

    def decorate(function: Any) -> Any:
        parameters = _parameters(function)
        names = inspect.signature(function).parameters
        has_json = function.__annotations__["return"] != "None"
        if has_json:
            flag = Parameter("as_json", Parameter.KEYWORD_ONLY, default=False)
            parameters["as_json"] = _parameter(flag, bool, "")

        def run(**options: Any) -> None:
            options = {key: None if value == [] else value for key, value in options.items()}
            arguments = _arguments(function, options)
            with ExitStack() as stack:
                if "ws" in names:
                    arguments["ws"] = stack.enter_context(open_workspace())
                if resume:
                    stack.enter_context(resumable(resume.format(**options)))
                if "on_progress" in names:
                    arguments["on_progress"] = stack.enter_context(terminal.progress())
                result = function(**arguments)
            printer = partial(show, result) if show else ""
            outcome = result if isinstance(result, Done) else Done(result, printer)
            if has_json and options["as_json"]:
                terminal.print_json(outcome.value)
            elif callable(outcome.message):
                outcome.message()
            else:
                for line in outcome.message.splitlines():
                    terminal.say(line)
            if outcome.code:
                raise typer.Exit(outcome.code)

        group.command(name)(_signed(run, function, parameters))
        return function

    return decorate


def _signed(run: Any, function: Callable[..., Any], parameters: Mapping[str, Parameter]) -> Any:
    # typer reads the signature
    run.__signature__ = inspect.Signature(list(parameters.values()))
    run.__annotations__ = {each.name: each.annotation for each in parameters.values()}
    run.__name__, run.__doc__ = function.__name__, _parse_docstring(function)[0]
    return run


def _parse_docstring(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """Return the text of a docstring, and its explanations of its arguments by name."""
    text, _, section = inspect.cleandoc(function.__doc__ or "").partition("\n\nArgs:\n")
    items = re.findall(r"(?ms)^    (\w+): (.*?)(?=\n    \w|\Z)", section)
    return text, {name: " ".join(each.split()) for name, each in items}


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the type of each argument from the command line, or the function that makes it."""
    annotations = {key: each for key, each in function.__annotations__.items() if key not in _GIVEN}
    holder = SimpleNamespace(__annotations__=annotations)
    hints = get_type_hints(holder, function.__globals__, include_extras=True)
    return {
        key: next(filter(inspect.isfunction, get_args(hint)), hint) for key, hint in hints.items()
    }


def _parameters(function: Callable[..., Any]) -> dict[str, Parameter]:
    _, helps = _parse_docstring(function)
    declared = inspect.signature(function).parameters
    parameters: dict[str, Parameter] = {}
    for name, hint in _hints(function).items():
        if inspect.isfunction(hint):
            parameters |= _parameters(hint)
        else:
            parameters[name] = _parameter(declared[name], hint, helps.get(name, ""))
    return parameters


def _arguments(function: Callable[..., Any], values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: hint(**_arguments(hint, values)) if inspect.isfunction(hint) else values[name]
        for name, hint in _hints(function).items()
    }


def _parameter(parameter: Parameter, hint: Any, text: str) -> Parameter:
    kind, *notes = get_args(hint) if hasattr(hint, "__metadata__") else (hint,)
    name, is_option = parameter.name, parameter.kind is Parameter.KEYWORD_ONLY
    info = copy(notes[0]) if notes else typer.Option() if is_option else typer.Argument()
    info.help = text or info.help or _HELP.get(name, "")
    value: str | None = name.upper()
    if is_option:
        value = next((word for each, word in _VALUES.items() if each in repr(kind)), None)
    info.metavar = info.metavar or value
    if is_option and info.default is ...:
        usual = f"--{name.replace('_', '-')}" if parameter.default is False else ""
        info.param_decls = tuple(_SPELLED.get(name, usual).split())
    return parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=Annotated[kind, info])


def _print_version(requested: bool) -> None:
    if requested:
        from kbkit import __version__

        typer.echo(f"kbkit {__version__}")
        raise typer.Exit


def _begin(
    *,
    workspace: Path | None = None,
    verbose: bool = False,
    log_json: bool = False,
    quiet: bool = False,
    version: Annotated[bool, typer.Option(callback=_print_version, is_eager=True)] = False,
) -> None:
    """Turn documentation into knowledge bases that answer, and publish them.

    Args:
        workspace: Folder of the workspace (default: KBKIT_WORKSPACE, kbkit.toml, ./kb).
        verbose: Log every step.
        log_json: Log steps and errors as JSON lines; secrets are left out.
        quiet: Print only results and errors.
        version: Print the version.
    """
    if verbose and quiet:
        raise typer.BadParameter("give either --verbose or --quiet")
    terminal.Verbosity.level = verbose - quiet
    configure_logs(verbose - quiet, as_json=log_json)
    Chosen.workspace = workspace


app.callback()(_signed(_begin, _begin, _parameters(_begin)))


@contextmanager
def resumable(command: str) -> Iterator[None]:
    """After an interruption, print the command that continues the work."""
    try:
        yield
    except KeyboardInterrupt:
        terminal.complain(f"interrupted; finished work is kept, and `{command}` continues it")
        raise


def load_commands(name: str | None = None) -> None:
    """Import the modules of all commands or of one, which registers them with `app`."""
    for module in [MODULE_OF[name]] if name else MODULE_OF.values():
        import_module(f"kbkit.cli.{module}")


def ingested(report: IngestReport, name: str) -> Done:
    """Return the result of an ingest; the code is 3 if nothing was read or a source failed."""
    failed = report.nothing_read or report.failed_sources
    return Done(
        report, partial(terminal.print_ingest, report, name), EXIT_NOTHING_READ if failed else 0
    )


class Chosen:
    """The workspace of ``--workspace``."""

    workspace: Path | None = None


def open_workspace() -> Workspace:
    from kbkit.workspace import Workspace

    return Workspace(Chosen.workspace)
