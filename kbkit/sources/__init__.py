"""Places that documents come from."""

from __future__ import annotations

from kbkit.errors import ConfigError
from kbkit.models import License
from kbkit.recipes import (
    AnySource,
    CrawlSource,
    FilesSource,
    JsonlSource,
    MirrorSource,
    OpenApiSource,
    PackageSource,
    PageSource,
    PluginSource,
)
from kbkit.sources.base import Source

__all__ = ["open_source"]


def open_source(spec: AnySource) -> Source:
    """Make the source that a part of a recipe describes; nothing is read yet.

    Args:
        spec: One of a recipe's ``sources``.

    Raises:
        ConfigError: There is no such type of source.
    """
    source = _open(spec)
    stated = License.stated(spec.license, attribution=spec.attribution)
    if not stated and not stated.attribution:
        return source
    from kbkit.sources.default_license import Licensed

    return Licensed(source, stated)


def _open(spec: AnySource) -> Source:
    if isinstance(spec, CrawlSource):
        from kbkit.sources.web.providers import Crawl

        return Crawl(spec)
    if isinstance(spec, PageSource):
        from kbkit.sources.web.providers import Page

        return Page(spec)
    if isinstance(spec, MirrorSource):
        from kbkit.sources.disk.mirror import Mirror

        return Mirror(spec)
    if isinstance(spec, FilesSource):
        from kbkit.sources.disk.files import Files

        return Files(spec)
    if isinstance(spec, JsonlSource):
        from kbkit.sources.disk.jsonl import JsonLines

        return JsonLines(spec)
    if isinstance(spec, OpenApiSource):
        from kbkit.sources.openapi.source import OpenApi

        return OpenApi(spec)
    if isinstance(spec, PackageSource):
        from kbkit.sources.package.source import Package

        return Package(spec)
    if isinstance(spec, PluginSource):
        from kbkit.sources.plugin import Plugin

        return Plugin(spec)
    raise ConfigError(f"{type(spec).__name__}: not a source that kbkit knows")
