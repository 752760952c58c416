"""Command line options for sources."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from kbkit.cli import AllowPrivate, AsJson, Name, app, open_workspace, takes
from kbkit.cli.terminal import print_listing, say
from kbkit.models.values import pluralize

if TYPE_CHECKING:
    from kbkit.models import SourceInfo
    from kbkit.recipes import AnySource


@dataclass(frozen=True, kw_only=True)
class SourceOptions:
    """Options of commands that take sources."""

    crawl: Annotated[
        list[str] | None, typer.Option(metavar="URL", help="Crawl a site from this address.")
    ] = None
    page: Annotated[list[str] | None, typer.Option(metavar="URL", help="Read one page.")] = None
    mirror: Annotated[
        str | None,
        typer.Option(
            metavar="PATH",
            help="Read saved HTML: a folder or archive (with --base-url), or a WARC.",
        ),
    ] = None
    base_url: Annotated[
        str | None, typer.Option(metavar="URL", help="Address that the saved pages come from.")
    ] = None
    files: Annotated[
        list[str] | None,
        typer.Option(metavar="GLOB", help="Read files: a glob, a file or a folder."),
    ] = None
    package: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Read the API of an installed Python package."),
    ] = None
    introspect: Annotated[
        bool,
        typer.Option(
            "--introspect",
            help="Package: also import it, which runs its code, to find dynamic members.",
        ),
    ] = False
    openapi: Annotated[
        list[str] | None,
        typer.Option("--openapi", metavar="PATH", help="Read an API description: a file or a URL."),
    ] = None
    jsonl: Annotated[
        list[str] | None,
        typer.Option(metavar="PATH", help="Read JSON lines with uri, title and content."),
    ] = None
    parquet: Annotated[
        list[str] | None,
        typer.Option(metavar="PATH", help="Read a Parquet file with uri, title and content."),
    ] = None
    limit: Annotated[
        int | None,
        typer.Option(
            min=1, help="Maximum documents a source (default: crawl 1,000, others 100,000)."
        ),
    ] = None
    include: Annotated[
        list[str] | None, typer.Option(metavar="GLOB", help="Glob of paths to read. Repeatable.")
    ] = None
    exclude: Annotated[
        list[str] | None, typer.Option(metavar="GLOB", help="Glob of paths to skip. Repeatable.")
    ] = None
    depth: Annotated[
        int | None,
        typer.Option(min=0, help="Crawl: maximum links from the start (default: no limit)."),
    ] = None
    sitemap: Annotated[
        bool, typer.Option("--sitemap/--no-sitemap", help="Crawl: also read the site's sitemaps.")
    ] = True
    concurrency: Annotated[
        int | None, typer.Option(min=1, max=32, help="Crawl: concurrent requests (default: 4).")
    ] = None
    delay: Annotated[
        float | None, typer.Option(min=0, help="Web: minimum seconds between requests.")
    ] = None
    provider: Annotated[
        str | None, typer.Option(help="Web: trafilatura, browser or firecrawl.")
    ] = None
    document_type: Annotated[
        str | None,
        typer.Option(
            "--type",
            help="Type of the documents: manual, tutorial, api_spec, faq, policy, reference or "
            "other (default: detected).",
        ),
    ] = None
    tag: Annotated[list[str] | None, typer.Option(help="Tag of the documents.")] = None
    license: Annotated[str, typer.Option(help="License of documents that state none.")] = ""
    attribution: Annotated[str, typer.Option(help="Credit for documents that state none.")] = ""
    allow_private: AllowPrivate = False

    def specs(self) -> list[AnySource]:
        """Return the sources, each with the options that it has."""
        from kbkit.recipes import parse_source

        if self.mirror is None and self.base_url is not None:
            raise typer.BadParameter("--base-url goes with --mirror")
        specs: list[dict[str, Any]] = [
            {"type": kind, _place(kind, place): place}
            for kind in _KINDS
            for place in getattr(self, kind) or ()
        ]
        if self.mirror is not None:
            specs.append({"type": "mirror", "path": self.mirror, "base_url": self.base_url})
        options = _options_by_type()
        for option in fields(self):
            value = getattr(self, option.name)
            is_place = option.name in (*_KINDS, "mirror", "base_url")
            if is_place or value in (None, [], option.default):
                continue
            name = "tags" if option.name == "tag" else option.name
            takers = [spec for spec in specs if name in options[spec["type"]]]
            for spec in takers:
                spec[name] = value
            if not takers:
                *others, last = (f"--{kind}" for kind, names in options.items() if name in names)
                kinds = f"{', '.join(others)} or {last}" if others else last
                shown = _OPTIONS.get(name, option.name.replace("_", "-"))
                raise typer.BadParameter(f"--{shown} goes with {kinds}")
        return [parse_source(spec) for spec in specs]


_KINDS = ("crawl", "page", "files", "package", "openapi", "jsonl", "parquet")
_WEB = re.compile("https?://")
_OPTIONS = {"sitemap": "no-sitemap", "document_type": "type"}  # with other names


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
@takes(SourceOptions, "options")
def add(name: Name, options: SourceOptions, as_json: AsJson = False) -> None:
    """Add sources without reading them."""
    specs = options.specs()
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
