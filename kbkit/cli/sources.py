"""Commands for the sources of a knowledge base, and the options that describe sources."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from kbkit.cli import app, command
from kbkit.cli.terminal import listing, say
from kbkit.models.values import pluralize

if TYPE_CHECKING:
    from kbkit.models import SourceInfo
    from kbkit.workspace import Workspace

_PLACES = ("crawl", "page", "files", "package", "openapi", "jsonl", "parquet")


def source_specs(
    *,
    crawl: list[str] | None = None,
    page: list[str] | None = None,
    files: list[str] | None = None,
    package: list[str] | None = None,
    openapi: Annotated[list[str] | None, typer.Option("--openapi")] = None,
    jsonl: list[str] | None = None,
    parquet: list[str] | None = None,
    mirror: str | None = None,
    base_url: str | None = None,
    introspect: bool = False,
    limit: int | None = None,
    include: list[str] | None = None,
    exclude: list[str] | None = None,
    depth: int | None = None,
    sitemap: bool | None = None,
    concurrency: int | None = None,
    delay: float | None = None,
    provider: str | None = None,
    document_type: Annotated[str | None, typer.Option("--type")] = None,
    tags: list[str] | None = None,
    license: str | None = None,
    attribution: str | None = None,
    allow_private: bool = False,
) -> list[Any]:
    """Return the sources, each with the options that it has.

    Args:
        crawl: Crawl a site from this address.
        page: Read one page.
        files: Read files: a glob, a file or a folder.
        package: Read the API of an installed Python package.
        openapi: Read an API description: a file or an address.
        jsonl: Read JSON lines with uri, title and content.
        parquet: Read a Parquet file with uri, title and content.
        mirror: Read saved HTML: a folder or archive (with --base-url), or a WARC.
        base_url: Address that the saved pages come from.
        introspect: Package: also import it, which runs its code.
        limit: Maximum documents a source (default: crawl 1,000, others 100,000).
        include: Glob of paths to read. Repeatable.
        exclude: Glob of paths to skip. Repeatable.
        depth: Crawl: maximum links from the start (default: no limit).
        sitemap: Crawl: also read sitemaps (default: yes).
        concurrency: Crawl: concurrent requests, 1 to 32 (default: 4).
        delay: Web: minimum seconds between requests.
        provider: Web: trafilatura, browser or firecrawl.
        document_type: Type of the documents (default: detected).
        tags: Tag of the documents.
        license: License of documents that state none.
        attribution: Credit for documents that state none.
        allow_private: Allow loopback and private addresses.
    """
    arguments = {
        name: value
        for name, value in locals().items()
        if value is not None and (value is not False or name == "sitemap")
    }
    from kbkit.recipes import parse_source

    if mirror is None and base_url is not None:
        raise typer.BadParameter("--base-url needs --mirror")
    specs: list[dict[str, Any]] = [
        {"type": kind, _place(kind, location): location}
        for kind in _PLACES
        for location in arguments.pop(kind, ())
    ]
    if mirror is not None:
        specs.append({"type": "mirror", "path": arguments.pop("mirror")})
    options = _options_by_type()
    for name, value in arguments.items():
        takers = [spec for spec in specs if name in options[spec["type"]]]
        for spec in takers:
            spec[name] = value
        if not takers:
            *flags, last = (f"--{kind}" for kind, names in options.items() if name in names)
            kinds = f"{', '.join(flags)} or {last}" if flags else last
            raise typer.BadParameter(f"{_SPELLED.get(name, f'--{name}')} needs {kinds}")
    return [parse_source(spec) for spec in specs]


_SPELLED = {"sitemap": "--no-sitemap", "document_type": "--type", "tags": "--tag"}


def some_specs(*, specs: Annotated[list[Any], source_specs]) -> list[Any]:
    """Return sources, at least one."""
    if not specs:
        raise typer.BadParameter("name a source, such as --crawl URL, --files GLOB or --jsonl FILE")
    return specs


Specs = Annotated[list[Any], source_specs]
SomeSpecs = Annotated[list[Any], some_specs]


_WEB = re.compile("https?://")


def _place(kind: str, location: str) -> str:
    if kind == "package":
        return "name"
    is_address = kind in ("crawl", "page") or (kind == "openapi" and _WEB.match(location))
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
KeepDocuments = Annotated[
    bool | None,
    typer.Option(
        "--keep-documents/--delete-documents", help="Keep or delete its documents (default: ask)."
    ),
]
_show = listing(
    "id type documents enabled location",
    "no sources; add one with `kbkit add NAME`",
    id=lambda source: source.id[:8],
)


@command(sources, "list", show=_show)
def list_(ws: Workspace, name: str) -> list[SourceInfo]:
    """List the sources of a knowledge base."""
    return list(ws[name].sources)


@command(sources, show=_show)
def add(ws: Workspace, name: str, *, specs: SomeSpecs) -> list[SourceInfo]:
    """Add sources without reading them."""
    added = ws[name].sources.add(specs)
    say(f"`kbkit refresh {name}` reads new documents")
    return added


@command(sources, "set", show=_show)
def set_(
    ws: Workspace,
    name: str,
    source: Source,
    options: Annotated[list[str], typer.Argument(metavar="OPTION=VALUE...")],
) -> list[SourceInfo]:
    """Change the options of a source.

    Args:
        options: Recipe options, such as limit=500; an empty value restores the default.
    """
    changed = ws[name].sources.update(source, **dict(_option(option) for option in options))
    say(f"`kbkit refresh {name}` reads it with the new options")
    return [changed]


@command(sources, show=_show)
def enable(ws: Workspace, name: str, source: Source) -> list[SourceInfo]:
    """Enable a source."""
    return [ws[name].sources.enable(source)]


@command(sources, show=_show)
def disable(ws: Workspace, name: str, source: Source) -> list[SourceInfo]:
    """Disable a source; its documents stay."""
    return [ws[name].sources.disable(source)]


@command(sources)
def remove(
    ws: Workspace, name: str, source: Source, *, keep_documents: KeepDocuments = None
) -> None:
    """Remove a source."""
    collection = ws[name].sources
    info = collection[source]
    if keep_documents is None and info.documents:
        question = f"Delete its {pluralize(info.documents)} too?"
        keep_documents = not typer.confirm(question, default=False, err=True)
    collection.remove(info.id, keep_documents=bool(keep_documents))
    outcome = "stay" if keep_documents else "were deleted"
    say(f"removed {info.location}; its {pluralize(info.documents)} {outcome}")


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
