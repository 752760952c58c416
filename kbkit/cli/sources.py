"""Command line options for sources."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from kbkit.cli import AllowPrivate, AsJson, Name, app, open_workspace, takes
from kbkit.cli.terminal import print_listing, say
from kbkit.models.values import pluralize

if TYPE_CHECKING:
    from kbkit.models import SourceInfo
    from kbkit.recipes import AnySource


Crawl = Annotated[
    list[str] | None, typer.Option(metavar="URL", help="Crawl a site from this address.")
]
Page = Annotated[list[str] | None, typer.Option(metavar="URL", help="Read one page.")]
Mirror = Annotated[
    str | None,
    typer.Option(
        metavar="PATH", help="Read saved HTML: a folder or archive (with --base-url), or a WARC."
    ),
]
BaseUrl = Annotated[
    str | None, typer.Option(metavar="URL", help="Address that the saved pages come from.")
]
Files = Annotated[
    list[str] | None, typer.Option(metavar="GLOB", help="Read files: a glob, a file or a folder.")
]
Package = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="Read the API of an installed Python package."),
]
Introspect = Annotated[
    bool,
    typer.Option(
        "--introspect",
        help="Package: also import it, which runs its code, to find dynamic members.",
    ),
]
OpenApi = Annotated[
    list[str] | None,
    typer.Option("--openapi", metavar="PATH", help="Read an API description: a file or a URL."),
]
Jsonl = Annotated[
    list[str] | None,
    typer.Option(metavar="PATH", help="Read JSON lines with uri, title and content."),
]
Parquet = Annotated[
    list[str] | None,
    typer.Option(metavar="PATH", help="Read a Parquet file with uri, title and content."),
]
Limit = Annotated[
    int | None,
    typer.Option(min=1, help="Maximum documents a source (default: crawl 1,000, others 100,000)."),
]
Include = Annotated[
    list[str] | None, typer.Option(metavar="GLOB", help="Glob of paths to read. Repeatable.")
]
Exclude = Annotated[
    list[str] | None, typer.Option(metavar="GLOB", help="Glob of paths to skip. Repeatable.")
]
Depth = Annotated[
    int | None, typer.Option(min=0, help="Crawl: maximum links from the start (default: no limit).")
]
Sitemap = Annotated[
    bool, typer.Option("--sitemap/--no-sitemap", help="Crawl: also read the site's sitemaps.")
]
Concurrency = Annotated[
    int | None, typer.Option(min=1, max=32, help="Crawl: concurrent requests (default: 4).")
]
Delay = Annotated[float | None, typer.Option(min=0, help="Web: minimum seconds between requests.")]
Provider = Annotated[str | None, typer.Option(help="Web: trafilatura, browser or firecrawl.")]
Type = Annotated[
    str | None,
    typer.Option(
        "--type",
        help="Type of the documents: manual, tutorial, api_spec, faq, policy, reference or "
        "other (default: detected).",
    ),
]
Tag = Annotated[list[str] | None, typer.Option(help="Tag of the documents.")]
License = Annotated[str, typer.Option(help="License of documents that state none.")]
Attribution = Annotated[str, typer.Option(help="Credit for documents that state none.")]


def named_sources(
    *,
    crawl: Crawl = None,
    page: Page = None,
    mirror: Mirror = None,
    base_url: BaseUrl = None,
    files: Files = None,
    package: Package = None,
    introspect: Introspect = False,
    openapi: OpenApi = None,
    jsonl: Jsonl = None,
    parquet: Parquet = None,
    limit: Limit = None,
    include: Include = None,
    exclude: Exclude = None,
    depth: Depth = None,
    sitemap: Sitemap = True,
    concurrency: Concurrency = None,
    delay: Delay = None,
    provider: Provider = None,
    document_type: Type = None,
    tag: Tag = None,
    license: License = "",
    attribution: Attribution = "",
    allow_private: AllowPrivate = False,
) -> list[AnySource]:
    from kbkit.recipes import parse_source

    given = _drop_unset(
        limit=limit,
        include=include,
        exclude=exclude,
        depth=depth,
        sitemap=None if sitemap else False,
        concurrency=concurrency,
        delay=delay,
        provider=provider,
        introspect=introspect or None,
        document_type=document_type,
        tags=tag,
        license=license,
        attribution=attribution,
        allow_private=allow_private or None,
    )
    if mirror is None and base_url is not None:
        raise typer.BadParameter("--base-url goes with --mirror")
    specs: list[dict[str, Any]] = [
        *({"type": "crawl", "url": url} for url in crawl or ()),
        *({"type": "page", "url": url} for url in page or ()),
        *({"type": "files", "path": path} for path in files or ()),
        *({"type": "package", "name": name} for name in package or ()),
        *(
            {"type": "openapi", "url" if _WEB.match(place) else "path": place}
            for place in openapi or ()
        ),
        *({"type": "jsonl", "path": path} for path in jsonl or ()),
        *({"type": "parquet", "path": path} for path in parquet or ()),
    ]
    if mirror is not None:
        specs.append({"type": "mirror", "path": mirror, "base_url": base_url})
    fields = _fields()
    for name in given:
        if not any(name in fields[values["type"]] for values in specs):
            takers = [f"--{kind}" for kind, names in fields.items() if name in names]
            option = _OPTIONS.get(name, name.replace("_", "-"))
            *others, last = takers
            kinds = f"{', '.join(others)} or {last}" if others else last
            raise typer.BadParameter(f"--{option} goes with {kinds}")
    return [
        parse_source(
            {**values, **{name: given[name] for name in given if name in fields[values["type"]]}}
        )
        for values in specs
    ]


_WEB = re.compile("https?://")
_OPTIONS = {"sitemap": "no-sitemap", "document_type": "type", "tags": "tag"}  # with other names


def _fields() -> dict[str, Collection[str]]:
    """Return the options of each type of source."""
    from kbkit.recipes import AnySource

    models = get_args(get_args(AnySource)[0])
    kinds = {str(model.model_fields["type"].default): model.model_fields for model in models}
    return {kind: fields for kind, fields in kinds.items() if kind != "plugin"}


def _drop_unset(**options: Any) -> dict[str, Any]:
    """Return options that are set; omitted ones have the recipe's defaults."""
    return {name: value for name, value in options.items() if value not in (None, "", [], ())}


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
@takes(named_sources, "specs")
def add(name: Name, specs: list[AnySource], as_json: AsJson = False) -> None:
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
        ("id", "type", "documents", "read", "location"),
        lambda source: (
            source.id[:8],
            source.type,
            f"{source.documents:,}",
            "yes" if source.enabled else "disabled",
            source.location,
        ),
        empty=empty,
    )
