"""Sources of documents."""

from __future__ import annotations

from importlib import import_module

from kbkit.errors import ConfigError
from kbkit.models import License
from kbkit.recipes import AnySource, SourceSpec
from kbkit.sources.base import SourceReader

__all__ = ["open_reader"]

_READERS = {
    "crawl": ("web.readers", "CrawlReader"),
    "page": ("web.readers", "PageReader"),
    "mirror": ("disk.archives", "MirrorReader"),
    "files": ("disk.files", "FilesReader"),
    "jsonl": ("disk.tables", "JsonlReader"),
    "parquet": ("disk.tables", "ParquetReader"),
    "openapi": ("openapi.source", "OpenApiReader"),
    "package": ("package.source", "PackageReader"),
    "plugin": ("plugin", "PluginReader"),
}
"""Module and class by source type, imported on first use."""


def open_reader(spec: AnySource) -> SourceReader:
    """Return the reader of a recipe's source; reads nothing yet."""
    unchecked: object = spec
    if not isinstance(unchecked, SourceSpec) or spec.type not in _READERS:
        raise ConfigError(f"{type(spec).__name__}: not a source that kbkit knows")
    module, name = _READERS[spec.type]
    reader: SourceReader = getattr(import_module(f"kbkit.sources.{module}"), name)(spec)
    stated = License.stated(spec.license, attribution=spec.attribution)
    if not stated and not stated.attribution:
        return reader
    from kbkit.sources.plugin import LicensedReader

    return LicensedReader(reader, stated)
