"""Options that name sources, and the sources that they name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from kbkit.cli.app import AllowPrivate

if TYPE_CHECKING:
    from kbkit.recipes import AnySource

Crawl = Annotated[
    list[str] | None, typer.Option(metavar="URL", help="Crawl a site from this address.")
]
Page = Annotated[list[str] | None, typer.Option(metavar="URL", help="Read one page.")]
Mirror = Annotated[
    str | None,
    typer.Option(
        metavar="PATH",
        help="Read saved HTML: a folder or archive (with --base-url), or a WARC.",
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
]  # fmt: skip
Parquet = Annotated[
    list[str] | None,
    typer.Option(metavar="PATH", help="Read a Parquet file with uri, title and content."),
]
Limit = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Maximum documents a source (default: crawl 1,000, others 100,000).",
    ),
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
Attribution = Annotated[
    str, typer.Option(help="Credit for documents that state none.")
]  # fmt: skip


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
    """The sources that options name.

    Raises:
        BadParameter: An option goes with a source that is not named.
        ConfigError: An option's value cannot work.
    """
    from kbkit.recipes import parse_source

    crawling = _given(depth=depth, concurrency=concurrency, sitemap=None if sitemap else False)
    fetching = _given(delay=delay)
    asked = _given(provider=provider)
    _check_used("--crawl", crawling, crawl)
    imported = _given(introspect=introspect or None)
    _check_used("--package", imported, package)
    _check_used("--crawl or --page", asked, crawl, page)
    _check_used("--crawl, --page or --openapi", fetching, crawl, page, openapi)
    if mirror is None and base_url is not None:
        raise typer.BadParameter("--base-url goes with --mirror")
    shared = _given(
        document_type=document_type, tags=tag, license=license, attribution=attribution
    )  # fmt: skip
    narrowed = _given(include=include, exclude=exclude)
    most = _given(limit=limit)
    private = _given(allow_private=allow_private)
    web = {**fetching, **asked, **private}
    wanted: list[dict[str, Any]] = [
        *({"type": "crawl", "url": url, **crawling, **narrowed, **most, **web}
          for url in crawl or ()),
        *({"type": "page", "url": url, **web} for url in page or ()),
        *({"type": "files", "path": path} for path in files or ()),
        *({"type": "package", "name": name, **imported, **most} for name in package or ()),
        *({"type": "openapi", "url": place, **most, **fetching, **private}
          if place.startswith(("http://", "https://"))
          else {"type": "openapi", "path": place, **most}
          for place in openapi or ()),
        *({"type": "jsonl", "path": path} for path in jsonl or ()),
        *({"type": "parquet", "path": path} for path in parquet or ()),
    ]  # fmt: skip
    if mirror is not None:
        wanted.append({"type": "mirror", "path": mirror, "base_url": base_url, **narrowed, **most})
    return [parse_source({**values, **shared}) for values in wanted]


def takes_sources(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of `named_sources`, in place of its parameter ``specs``."""
    options = inspect.signature(named_sources).parameters

    def run(**given: Any) -> None:
        named = {name: given.pop(name) for name in options}
        command(**given, specs=named_sources(**named))

    # typer reads what a command takes off its signature
    late = {"AnySource": object}  # a name that only type checkers know
    hints = {
        **get_type_hints(named_sources, None, late, include_extras=True),
        **get_type_hints(command, None, late, include_extras=True),
    }
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        parameters += options.values() if name == "specs" else [parameter]
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [each.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[each.name])
         for each in parameters]
    )  # fmt: skip
    run.__annotations__ = {each.name: hints[each.name] for each in parameters}
    run.__name__, run.__doc__ = command.__name__, command.__doc__
    return run


def _given(**options: Any) -> dict[str, Any]:
    """Options that say something; what is left out has the recipe's default."""
    return {name: value for name, value in options.items() if value not in (None, "", [], ())}


def _check_used(goes_with: str, options: dict[str, Any], *sources: list[str] | None) -> None:
    """Whether options have a source that they shape.

    Raises:
        BadParameter: They have none.
    """
    if options and not any(sources):
        name = "no-sitemap" if "sitemap" in options else next(iter(options))
        raise typer.BadParameter(f"--{name} goes with {goes_with}")
