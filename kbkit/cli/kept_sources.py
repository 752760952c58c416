"""Commands about the sources that a knowledge base remembers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from kbkit.cli.app import AsJson, Name, app, open_workspace
from kbkit.cli.sources import takes_sources
from kbkit.models.plain import pluralize
from kbkit.terminal import print_json, print_table, say

if TYPE_CHECKING:
    from kbkit.models import SourceInfo
    from kbkit.recipes import AnySource

sources = typer.Typer(
    help="Manage the sources of a knowledge base.",
    no_args_is_help=True,
)
app.add_typer(sources, name="sources")

Source = Annotated[
    str,
    typer.Argument(help="Its location, or the start of its id.", show_default=False),
]


@sources.command("list")
def list_(context: typer.Context, name: Name, as_json: AsJson = False) -> None:
    """List the sources of a knowledge base."""
    with open_workspace(context) as workspace:
        found = list(workspace[name].sources)
    _print(found, as_json)
    if not found and not as_json:
        say(f"{name} has no sources; add one with `kbkit add {name}`")


@sources.command()
@takes_sources
def add(
    context: typer.Context, name: Name, specs: list[AnySource], as_json: AsJson = False
) -> None:
    """Add sources without reading them."""
    if not specs:
        raise typer.BadParameter("name a source, such as --crawl URL, --files GLOB or --jsonl FILE")
    with open_workspace(context) as workspace:
        added = workspace[name].sources.add(specs)
    _print(added, as_json)
    say(f"`kbkit refresh {name}` reads what is new")


@sources.command("set")
def set_(
    context: typer.Context,
    name: Name,
    source: Source,
    options: Annotated[
        list[str],
        typer.Argument(
            metavar="OPTION=VALUE...",
            help="Recipe options, such as limit=500; an empty value restores the default.",
            show_default=False,
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Change the options of a source."""
    given = dict(_option(option) for option in options)
    with open_workspace(context) as workspace:
        changed = workspace[name].sources.update(source, **given)
    _print([changed], as_json)
    say(f"`kbkit refresh {name}` reads it so")


@sources.command()
def enable(context: typer.Context, name: Name, source: Source, as_json: AsJson = False) -> None:
    """Enable a source."""
    with open_workspace(context) as workspace:
        _print([workspace[name].sources.enable(source)], as_json)


@sources.command()
def disable(context: typer.Context, name: Name, source: Source, as_json: AsJson = False) -> None:
    """Disable a source; its documents stay."""
    with open_workspace(context) as workspace:
        _print([workspace[name].sources.disable(source)], as_json)


@sources.command()
def remove(
    context: typer.Context,
    name: Name,
    source: Source,
    keep_documents: Annotated[
        bool | None,
        typer.Option(
            "--keep-documents/--delete-documents",
            help="Keep or delete its documents (default: ask).",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Remove a source."""
    with open_workspace(context) as workspace:
        kept = workspace[name].sources
        found = kept[source]
        if keep_documents is None and found.documents:
            question = f"Delete its {pluralize(found.documents)} too?"
            keep_documents = not typer.confirm(question, default=False, err=True)
        kept.remove(found.id, keep_documents=bool(keep_documents))
    done = "stay" if keep_documents else "were deleted"
    say(f"removed {found.location}; its {pluralize(found.documents)} {done}")


def _option(text: str) -> tuple[str, Any]:
    """An option and its value, of which YAML tells the type.

    Raises:
        BadParameter: It is none.
    """
    import yaml

    key, sign, value = text.partition("=")
    if not sign or not key.strip():
        raise typer.BadParameter(f"{text!r}: write OPTION=VALUE, such as limit=500")
    try:
        return key.strip(), yaml.safe_load(value)
    except yaml.YAMLError:
        return key.strip(), value


def _print(found: list[SourceInfo], as_json: bool) -> None:
    if as_json:
        print_json([source.to_dict() for source in found])
        return
    if not found:
        return
    from rich.table import Table
    from rich.text import Text

    table = Table("id", "type", "documents", "read", "location", box=None)
    table.columns[-1].overflow = "fold"
    for source in found:
        read = "yes" if source.enabled else "disabled"
        table.add_row(
            source.id[:8], source.type, f"{source.documents:,}", read, Text(source.location)
        )
    print_table(table)
