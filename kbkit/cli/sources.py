"""Command line options for sources."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from kbkit.cli import AsJson, Name, Options, app, open_workspace, takes, with_options
from kbkit.cli.terminal import print_listing, say
from kbkit.models.values import pluralize

if TYPE_CHECKING:
    from kbkit.models import SourceInfo
    from kbkit.recipes import AnySource


_PLACES: Options = {
    "crawl": ("", list[str], "Crawl a site from this address."),
    "page": ("", list[str], "Read one page."),
    "files": ("", list[str], "Read files: a glob, a file or a folder."),
    "package": ("", list[str], "Read the API of an installed Python package."),
    "openapi": ("--openapi", list[str], "Read an API description: a file or an address."),
    "jsonl": ("", list[str], "Read JSON lines with uri, title and content."),
    "parquet": ("", list[str], "Read a Parquet file with uri, title and content."),
    "mirror": ("", str, "Read saved HTML: a folder or archive (with --base-url), or a WARC."),
    "base_url": ("", str, "Address that the saved pages come from."),
}
_OPTIONS: Options = {
    "introspect": ("--introspect", bool, "Package: also import it, which runs its code."),
    "limit": ("", int, "Maximum documents a source (default: crawl 1,000, others 100,000)."),
    "include": ("", list[str], "Glob of paths to read. Repeatable."),
    "exclude": ("", list[str], "Glob of paths to skip. Repeatable."),
    "depth": ("", int, "Crawl: maximum links from the start (default: no limit)."),
    "sitemap": ("--sitemap/--no-sitemap", bool, "Crawl: also read sitemaps (default: yes)."),
    "concurrency": ("", int, "Crawl: concurrent requests, 1 to 32 (default: 4)."),
    "delay": ("", float, "Web: minimum seconds between requests."),
    "provider": ("", str, "Web: trafilatura, browser or firecrawl."),
    "document_type": ("--type", str, "Type of the documents (default: detected)."),
    "tags": ("--tag", list[str], "Tag of the documents."),
    "license": ("", str, "License of documents that state none."),
    "attribution": ("", str, "Credit for documents that state none."),
    "allow_private": ("--allow-private", bool, "Allow loopback and private addresses."),
}


@with_options({**_PLACES, **_OPTIONS})
def source_specs(**given: Any) -> list[AnySource]:
    """Return the sources, each with the options that it has."""
    from kbkit.recipes import parse_source

    mirror, base_url = given["mirror"], given["base_url"]
    if mirror is None and base_url is not None:
        raise typer.BadParameter("--base-url needs --mirror")
    specs: list[dict[str, Any]] = [
        {"type": kind, _place(kind, place): place}
        for kind in _PLACES
        if kind not in ("mirror", "base_url")
        for place in given[kind] or ()
    ]
    if mirror is not None:
        specs.append({"type": "mirror", "path": mirror, "base_url": base_url})
    options = _options_by_type()
    for name, (spelling, _, _) in _OPTIONS.items():
        if given[name] in (None, []):
            continue
        takers = [spec for spec in specs if name in options[spec["type"]]]
        for spec in takers:
            spec[name] = given[name]
        if not takers:
            *others, last = (f"--{kind}" for kind, names in options.items() if name in names)
            kinds = f"{', '.join(others)} or {last}" if others else last
            shown = spelling.rpartition("/")[2] or f"--{name.replace('_', '-')}"
            raise typer.BadParameter(f"{shown} needs {kinds}")
    return [parse_source(spec) for spec in specs]


_WEB = re.compile("https?://")


def _place(kind: str, place: str) -> str:
    if kind == "package":
        return "name"
    is_address = kind in ("crawl", "page") or (kind == "openapi" and _WEB.match(place))
    return "url" if is_address else "path"


def _options_by_type() -> dict[str, Collection[str]]:
    """Return the options of each type of source."""
    from kbkit.recipes import AnySource

    models = get_args(get_args(AnySource)[0])
    kinds = {str(model.model_fields["type"].default): model.model_fields for model in models}
    return {kind: names for kind, names in kinds.items() if kind != "plugin"}


sources = typer.Typer(help="Manage the sources of a knowledge base.", no_args_is_help=True)
app.add_typer(sources, name="sources")

Source = Annotated[str, typer.Argument(help="Its location, or the start of its id.")]


@sources.command("list")
def list_(name: Name, as_json: AsJson = False) -> None:
    """List the sources of a knowledge base."""
    with open_workspace() as workspace:
        infos = list(workspace[name].sources)
    _print(infos, as_json, f"{name} has no sources; add one with `kbkit add {name}`")


@sources.command()
@takes(source_specs, "specs")
def add(name: Name, specs: list[Any], as_json: AsJson = False) -> None:
    """Add sources without reading them."""
    if not specs:
        raise typer.BadParameter("name a source, such as --crawl URL, --files GLOB or --jsonl FILE")
    with open_workspace() as workspace:
        added = workspace[name].sources.add(specs)
    _print(added, as_json)
    say(f"`kbkit refresh {name}` reads new documents")


@sources.command("set")
def set_(
    name: Name,
    source: Source,
    options: Annotated[
        list[str],
        typer.Argument(
            metavar="OPTION=VALUE...",
            help="Recipe options, such as limit=500; an empty value restores the default.",
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Change the options of a source."""
    given = dict(_option(option) for option in options)
    with open_workspace() as workspace:
        changed = workspace[name].sources.update(source, **given)
    _print([changed], as_json)
    say(f"`kbkit refresh {name}` reads it with the new options")


@sources.command()
def enable(name: Name, source: Source, as_json: AsJson = False) -> None:
    """Enable a source."""
    with open_workspace() as workspace:
        _print([workspace[name].sources.enable(source)], as_json)


@sources.command()
def disable(name: Name, source: Source, as_json: AsJson = False) -> None:
    """Disable a source; its documents stay."""
    with open_workspace() as workspace:
        _print([workspace[name].sources.disable(source)], as_json)


@sources.command()
def remove(
    name: Name,
    source: Source,
    keep_documents: Annotated[
        bool | None,
        typer.Option(
            "--keep-documents/--delete-documents",
            help="Keep or delete its documents (default: ask).",
        ),
    ] = None,
) -> None:
    """Remove a source."""
    with open_workspace() as workspace:
        collection = workspace[name].sources
        info = collection[source]
        if keep_documents is None and info.documents:
            question = f"Delete its {pluralize(info.documents)} too?"
            keep_documents = not typer.confirm(question, default=False, err=True)
        collection.remove(info.id, keep_documents=bool(keep_documents))
    done = "stay" if keep_documents else "were deleted"
    say(f"removed {info.location}; its {pluralize(info.documents)} {done}")


def _option(text: str) -> tuple[str, Any]:
    """Parse an option with a YAML value."""
    import yaml

    key, sign, value = text.partition("=")
    if not sign or not key.strip():
        raise typer.BadParameter(f"{text!r}: write OPTION=VALUE, such as limit=500")
    try:
        return key.strip(), yaml.safe_load(value)
    except yaml.YAMLError:
        return key.strip(), value


def _print(infos: list[SourceInfo], as_json: bool, empty: str = "") -> None:
    print_listing(
        infos,
        as_json,
        "id type documents enabled location",
        empty=empty,
        id=lambda source: source.id[:8],
    )
