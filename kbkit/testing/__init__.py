"""For tests of kbkit and of what is built on it: fakes, and what a backend has to pass.

`HashEmbedder` and `DocumentsReader` do the real thing in small, without a model or the network, and
`serve_folder` is a real web server. `DatabaseConformance` and `VectorStoreConformance` are test
classes: a subclass that says how its backend is opened runs them all. They need pytest.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from kbkit.testing.fakes import DocumentsReader, HashEmbedder
from kbkit.web_server import serve_folder

if TYPE_CHECKING:
    from kbkit.testing.databases import DatabaseConformance
    from kbkit.testing.vector_stores import VectorStoreConformance

__all__ = [
    "DatabaseConformance",
    "DocumentsReader",
    "HashEmbedder",
    "VectorStoreConformance",
    "serve_folder",
]

_HOME = {"DatabaseConformance": "databases", "VectorStoreConformance": "vector_stores"}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'kbkit.testing' has no attribute {name!r}")
    return getattr(import_module(f"kbkit.testing.{_HOME[name]}"), name)
