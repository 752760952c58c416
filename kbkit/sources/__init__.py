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
from kbkit.sources.base import SourceReader

__all__ = ["open_reader"]


def open_reader(spec: AnySource) -> SourceReader:
    """Make the reader of a source that a recipe describes; nothing is read yet.

    Args:
        spec: One of a recipe's ``sources``.

    Raises:
        ConfigError: There is no such type of source.
    """
    reader = _open(spec)
    stated = License.stated(spec.license, attribution=spec.attribution)
    if not stated and not stated.attribution:
        return reader
    from kbkit.sources.default_license import LicensedReader

    return LicensedReader(reader, stated)


def _open(spec: AnySource) -> SourceReader:
    if isinstance(spec, CrawlSource):
        from kbkit.sources.web.readers import CrawlReader

        return CrawlReader(spec)
    if isinstance(spec, PageSource):
        from kbkit.sources.web.readers import PageReader

        return PageReader(spec)
    if isinstance(spec, MirrorSource):
        from kbkit.sources.disk.mirror import MirrorReader

        return MirrorReader(spec)
    if isinstance(spec, FilesSource):
        from kbkit.sources.disk.files import FilesReader

        return FilesReader(spec)
    if isinstance(spec, JsonlSource):
        from kbkit.sources.disk.jsonl import JsonlReader

        return JsonlReader(spec)
    if isinstance(spec, OpenApiSource):
        from kbkit.sources.openapi.source import OpenApiReader

        return OpenApiReader(spec)
    if isinstance(spec, PackageSource):
        from kbkit.sources.package.source import PackageReader

        return PackageReader(spec)
    if isinstance(spec, PluginSource):
        from kbkit.sources.plugin import PluginReader

        return PluginReader(spec)
    raise ConfigError(f"{type(spec).__name__}: not a source that kbkit knows")
