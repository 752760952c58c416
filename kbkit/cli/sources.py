"""Options that name sources, and the sources that they name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from kbkit.errors import ConfigError

if TYPE_CHECKING:
    from kbkit.recipes import AnySource

Crawl = Annotated[list[str] | None, typer.Option(help="Crawl a site from this address.")]
Page = Annotated[list[str] | None, typer.Option(help="Read one page.")]
Mirror = Annotated[
    str | None,
    typer.Option(
        help="Read HTML kept on disk: a folder, an archive (both need --base-url) or a WARC."
    ),
]
BaseUrl = Annotated[str | None, typer.Option(help="Address that the mirror stands for.")]
Files = Annotated[list[str] | None, typer.Option(help="Read files: a glob, a file or a folder.")]
Package = Annotated[
    list[str] | None, typer.Option(help="Read the API of an installed Python package.")
]
OpenApi = Annotated[
    list[str] | None, typer.Option("--openapi", help="Read an API description: a file or a URL.")
]
Jsonl = Annotated[
    list[str] | None,
    typer.Option(help="Read JSON lines with uri, title, text, and optional document_type, "
                 "tags, metadata."),
]  # fmt: skip
Limit = Annotated[int | None, typer.Option(min=1, help="Most documents of each source.")]
Include = Annotated[list[str] | None, typer.Option(help="Glob of paths to read.")]
Exclude = Annotated[list[str] | None, typer.Option(help="Glob of paths to leave out.")]


def named_sources(
    crawl: list[str] | None,
    page: list[str] | None,
    mirror: str | None,
    base_url: str | None,
    files: list[str] | None,
    package: list[str] | None,
    openapi: list[str] | None,
    jsonl: list[str] | None,
    limit: int | None,
    include: list[str] | None,
    exclude: list[str] | None,
    allow_private: bool,
) -> list[AnySource]:
    """The sources that options name.

    Raises:
        ConfigError: An option's value cannot work.
    """
    from pydantic import ValidationError

    from kbkit.recipes import parse_source

    narrowed: dict[str, Any] = {"include": include or [], "exclude": exclude or []}
    most: dict[str, Any] = {} if limit is None else {"limit": limit}
    private = {"allow_private": allow_private}
    if mirror is None and base_url is not None:
        raise typer.BadParameter("--base-url goes with --mirror")
    wanted: list[dict[str, Any]] = [
        *({"type": "crawl", "url": url, **narrowed, **most, **private} for url in crawl or ()),
        *({"type": "page", "url": url, **private} for url in page or ()),
        *({"type": "files", "path": path} for path in files or ()),
        *({"type": "package", "name": name, **most} for name in package or ()),
        *(
            {"type": "openapi", "url": place, **most, **private}
            if place.startswith(("http://", "https://"))
            else {"type": "openapi", "path": place, **most}
            for place in openapi or ()
        ),
        *({"type": "jsonl", "path": path} for path in jsonl or ()),
    ]
    if mirror is not None:
        wanted.append({"type": "mirror", "path": mirror, "base_url": base_url, **narrowed, **most})
    try:
        return [parse_source(values) for values in wanted]
    except ValidationError as error:
        found = error.errors()[0]
        field = ".".join(str(part) for part in found["loc"])
        message = found["msg"].removeprefix("Value error, ")
        if field.endswith("url") and found["type"] == "string_pattern_mismatch":
            message = "not a web address; begin it with http:// or https://"
        given = f" (given: {found['input']})" if isinstance(found["input"], str) else ""
        raise ConfigError(f"{field}: {message}{given}") from None
